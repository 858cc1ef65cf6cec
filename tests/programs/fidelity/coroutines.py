"""Runs coroutines, one in a thread, one that is cancelled, and a subprocess."""

import asyncio
import sys


async def tick(name: str, times: int) -> str:
    for number in range(times):
        await asyncio.sleep(0.01)
        print(name, number)
    return name


async def main() -> None:
    print(await tick("first", 3))
    print(await asyncio.to_thread(sum, range(10)))
    endless = asyncio.create_task(asyncio.sleep(60))
    await asyncio.sleep(0)
    endless.cancel()
    try:
        await endless
    except asyncio.CancelledError:
        print("cancelled")
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "print('child')", stdout=asyncio.subprocess.PIPE)
    print((await child.communicate())[0].decode(), end="")


asyncio.run(main())
