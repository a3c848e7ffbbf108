"""Counts the instructions of each kernel's hottest loop, from the disassembly.

Usage: sass.py OBJECT ARCH      prints the counts of each kernel. ARCH is like 90.

The hottest loop is the loop whose iteration does the most work. By default, the work is the number
of exponentials and logarithms. If several loops have equal work, the loop with the fewest basic
blocks is chosen. If an iteration has several paths, the path with the most work is used. If several
paths have equal work, the path with the most stores is used, and then the path with the fewest
instructions. Needs cuobjdump and nvdisasm.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

import ptxas

Counts = collections.Counter  # {opcode without modifiers: count}. The key 'all' has the sum.

EXPONENTIALS = ('MUFU.EX2', 'MUFU.LG2')  # Exponentials and logarithms.

_INSTRUCTION = re.compile(
    r'\s+/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<guard>@!?U?P\w+\s+)?'
    r'(?P<opcode>[A-Z]\w*)(?P<rest>[^;]*);')
_TARGET = re.compile(r'0x([0-9a-f]+)\s*$')


class Block:
    """A basic block: its instructions run one after another, and only the last one may branch."""

    def __init__(self):
        self.counts = Counts()
        self.work = 0
        self.next = []  # The addresses of the blocks that may follow.

    def add(self, opcode: str, rest: str, work: tuple[str, ...]):
        self.counts[opcode] += 1
        self.counts['all'] += 1
        self.work += (opcode + rest).startswith(work)


def parse(text: str) -> dict[tuple[str, str], list[re.Match]]:
    """Returns the instructions of each function, by (architecture, mangled name)."""
    functions = {}
    arch = current = None
    for line in text.splitlines():
        if match := re.match(r'\s*code for sm_(\w+)', line):
            arch = match[1]
        elif match := re.match(r'\s*Function : (\S+)', line):
            current = functions.setdefault((arch, match[1]), [])
        elif current is not None and (match := _INSTRUCTION.match(line)):
            current.append(match)
    return functions


def blocks(instructions: list[re.Match], work=EXPONENTIALS) -> dict[int, Block]:
    """Returns the control flow graph as basic blocks by address."""
    addresses = [int(each['address'], 16) for each in instructions]
    known = set(addresses)
    starts = {addresses[0]}
    ends = {}  # {address of an instruction that ends a block: addresses that may follow it}
    for i, each in enumerate(instructions):
        following = addresses[i + 1:i + 2]
        opcode, rest = each['opcode'], each['rest']
        if opcode == 'BRA':
            target = int(_TARGET.search(rest)[1], 16)
            # Instructions with a guard such as @P0 may fall through to the next instruction.
            # BRA.DIV and `BRA P0, ...` have no guard, but have a condition and may fall through,
            # too.
            certain = not each['guard'] and re.fullmatch(r'(\.U)?\s+0x\w+\s*', rest)
            after = [target] + ([] if certain else following)
        elif opcode in ('EXIT', 'RET', 'BRX', 'KILL'):
            after = following if each['guard'] else []
        else:
            continue
        ends[addresses[i]] = [a for a in after if a in known]
        starts.update(ends[addresses[i]], following)
    graph = {}
    for i, each in enumerate(instructions):
        address = addresses[i]
        if address in starts:
            block = graph[address] = Block()
        block.add(each['opcode'], each['rest'], work)
        following = addresses[i + 1:i + 2]
        if address in ends:
            block.next = ends[address]
        elif following and following[0] in starts:
            block.next = following
    return graph


def loops(graph: dict[int, Block]) -> list[tuple[int, set[int]]]:
    """Returns (head, members) for each backward branch. `head` is the branch's target. `members`
    are the blocks on the paths from the head to the branch.
    """
    before = collections.defaultdict(list)
    for address, block in graph.items():
        for after in block.next:
            before[after].append(address)
    found = []
    for address, block in graph.items():
        for head in block.next:
            if head > address:
                continue
            members, todo = {head}, [address]
            while todo:
                member = todo.pop()
                if member not in members:
                    members.add(member)
                    todo += before[member]
            found.append((head, members))
    return found


def iteration(graph: dict[int, Block], head: int, members: set[int]):
    """Returns (work, counts) of the best path from head to head, according to _rank(). An inner
    loop on the path is counted as one iteration.
    """
    best = {head: (graph[head].work, graph[head].counts)}
    closing = []
    for address in sorted(members):  # Addresses rise, except for branches back.
        if address not in best:
            continue
        work, counts = best[address]
        for after in graph[address].next:
            if after == head:
                closing.append((work, counts))
            if after <= address or after not in members:
                continue
            way = (work + graph[after].work, counts + graph[after].counts)
            if after not in best or _rank(way) > _rank(best[after]):
                best[after] = way
    return max(closing, key=_rank, default=(0, Counts()))


def _rank(way):
    work, counts = way
    return work, counts['STG'], -counts['all']


def hottest_loop(instructions: list[re.Match], work=EXPONENTIALS) -> Counts:
    """Returns the counts of the hottest loop, or empty counts if no loop does any work.

    An instruction is work if its name begins with an element of `work`.
    """
    graph = blocks(instructions, work)
    best = (0, 0), Counts()  # ((work, minus the number of blocks), counts)
    for head, members in loops(graph):
        done, counts = iteration(graph, head, members)
        best = max(best, ((done, -len(members)), counts), key=lambda each: each[0])
    return best[1]


def disassemble(cuobjdump: pathlib.Path, file: pathlib.Path, arch: str,
                functions: tuple[str, ...] = ()) -> str:
    """Returns the device code of an object file, or of some functions by mangled name.

    nvdisasm must be in cuobjdump's folder or on the PATH.
    """
    command = [cuobjdump, '-sass', '-arch', f'sm_{arch}', file]
    if functions:
        command += ['-fun', ','.join(functions)]
    path = f'{cuobjdump.parent}:{os.environ.get("PATH", "")}'
    return subprocess.run(command, env={**os.environ, 'PATH': path}, text=True,
                          capture_output=True, check=True).stdout


def count(text: str, work=EXPONENTIALS) -> dict[tuple[str, str], Counts]:
    """Returns the counts of each kernel's hottest loop, by (name, architecture)."""
    functions = parse(text)
    names = ptxas.demangle([name for _, name in functions])
    return {(name, arch): hottest_loop(instructions, work)
            for name, ((arch, _), instructions) in zip(names, functions.items())}


def main():
    cuobjdump = shutil.which('cuobjdump')
    if not cuobjdump or len(sys.argv) != 3:
        sys.exit(__doc__)
    text = disassemble(pathlib.Path(cuobjdump), pathlib.Path(sys.argv[1]), sys.argv[2])
    for (name, arch), counts in sorted(count(text).items()):
        shown = ' '.join(f'{key} {number}' for key, number in counts.most_common())
        print(f'sm_{arch} {name}: {shown}')


if __name__ == '__main__':
    main()
