"""The hostile net in which the checkers run protocol cores."""
