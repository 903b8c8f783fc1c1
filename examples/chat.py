"""A chat among the holders of a group key, on the local network and without a server.

    beforehand group new harbour            # once; hand `harbour.key` to the others
    python chat.py harbour ann              # and `python chat.py harbour bob` elsewhere

A member that was offline gets the missed messages when it returns, as long as a peer that received
them is reachable. No member sees an answer before its question.
"""

import asyncio
import sys

import beforehand


async def main(harbour: str, name: str, *peers: str) -> None:
    """Run the chat.

    peers: `host:port` of other members, for a network without multicast; discovery is then off.
    """
    group = beforehand.Group(
        harbour,
        name=name,
        store=f"{name}.db",
        key=f"{harbour}.key",
        lifetime="1d",
        listen="127.0.0.1:0" if peers else ":0",
        peers=[peer for peer in peers if peer != "-"],
        discover=not peers,
    )
    async with group:
        print("listening at", *group.addresses, flush=True)
        await asyncio.gather(show(group), say(group))


async def show(group: beforehand.Group) -> None:
    async for message in group:
        print(f"{message.origin}: {message.payload.decode(errors='replace')}", flush=True)


async def say(group: beforehand.Group) -> None:
    lines = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(lines)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    async for line in lines:
        await group.broadcast(line.strip())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
