"""A text that three people edit, one of them offline for a while; `pip install pycrdt`.

A replicated document (CRDT) merges edits in any order. It must, however, buffer an edit that
arrives before the edit it builds on. A group delivers causes first, so the document never buffers
an edit and can show each one on arrival.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from pycrdt import Doc, Text, TransactionEvent

import beforehand


class Editor:
    """One replica of the text, and its membership in the group."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.doc = Doc()
        self.text = self.doc.get("text", type=Text)
        self.put_aside = 0
        self._made: list[bytes] = []
        self._watching = self.doc.observe(self._on_change)

    async def join(self, *peers: str) -> str:
        """Join the group, and return the address at which peers find this editor."""
        self.group = beforehand.Group(
            "text",
            name=self.name,
            store=self.folder / f"{self.name}.db",
            key=self.folder / "text.key",
            lifetime="1d",
            listen="127.0.0.1:0",
            peers=peers,
            discover=False,
        )
        await self.group.open()
        self._listening = asyncio.create_task(self._listen())
        return str(self.group.addresses[0])

    async def leave(self) -> None:
        await self.group.close()
        await self._listening

    async def write(self, at: int, words: str) -> None:
        self._made.clear()
        self.text.insert(at, words)
        await self.group.broadcast(self._made[-1])

    async def _listen(self) -> None:
        async for message in self.group:
            self._made.clear()
            self.doc.apply_update(message.payload)
            if not self._made:  # unchanged document: the edit waits for another one
                self.put_aside += 1

    def _on_change(self, event: TransactionEvent) -> None:
        self._made.append(event.update)


async def main(folder: Path) -> list[Editor]:
    beforehand.new_group("text").write(folder / "text.key")
    ann, bob, eve = (Editor(folder, name) for name in ("ann", "bob", "eve"))
    at_ann = await ann.join()
    at_bob = await bob.join(at_ann)
    await eve.join(at_ann, at_bob)
    await ann.write(0, "Fog at pier 4. ")
    await agree(ann, bob, eve)

    await eve.leave()
    await eve.join()  # on the boat: she has no peers' addresses, and they do not have hers
    for word in ("Bring ", "a ", "lamp."):
        await eve.write(len(str(eve.text)), word)
    for editor, other in ((ann, bob), (bob, ann)):
        for word in ("The ", "ferry ", "waits. "):
            await editor.write(len(str(editor.text)), word)
            await agree(editor, other)

    await eve.leave()
    await eve.join(at_ann)
    await agree(ann, bob, eve)
    for editor in (ann, bob, eve):
        await editor.leave()
    return [ann, bob, eve]


async def agree(*editors: Editor) -> None:
    async with asyncio.timeout(30):
        while len({str(editor.text) for editor in editors}) > 1:
            await asyncio.sleep(0.01)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for one in asyncio.run(main(Path(place))):
            print(f"{one.name}: {one.text}  ({one.put_aside} edits put aside)", file=sys.stdout)
