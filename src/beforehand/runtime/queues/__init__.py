"""The queues of a node: broadcasts, frames to send, and deliveries for the application."""
