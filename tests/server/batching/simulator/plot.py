#!/usr/bin/env python3
"""Turns the simulator's CSV into a picture and a table.

    bazel-bin/tests/server/batching/simulator/simulate |
        tests/server/batching/simulator/plot.py docs

The argument is a folder that contains serving.md. Writes goodput.svg into this folder. The picture
shows goodput against load. Writes the table into serving.md, where it replaces the text between
the marks `<!-- simulator -->` and `<!-- /simulator -->`.
"""

import csv
import pathlib
import sys

# The scenario, arrivals and title of each panel. Each panel is also a row of the table.
PANELS = (
    ('cpu_10_batches', 'poisson', 'One size, deadline 10 batch times'),
    ('cpu_2_batches', 'poisson', 'One size, deadline 2 batch times'),
    ('cpu_mixed', 'poisson', 'Six sizes'),
    ('cpu_mixed', 'bursts', 'Six sizes, 16 images at once'),
    ('gpu_mixed', 'poisson', 'Six sizes, four GPUs'),
    ('gpu_mixed', 'diurnal', 'Six sizes, four GPUs, load 0.2 to 1.8 times'),
)
# The column of the CSV, the mode, the name and the colour of each line in a panel.
LINES = (
    ('part_of_offered', 'latency', 'latency', '#0b62a4'),
    ('part_of_offered', 'fixed', 'fixed', '#c0392b'),
    ('one_by_one', 'latency', 'one by one', '#888888'),
)
TABLE_LOADS = (0.7, 0.9, 1.0, 1.2, 2.0, 10.0)
BEGIN, END = '<!-- simulator -->\n', '<!-- /simulator -->'
WIDTH, HEIGHT, COLUMNS = 300, 190, 3  # The size of a panel, panels per row.
LEFT, TOP, RIGHT, BOTTOM = 34, 26, 8, 30


def read(lines):
    """Returns the rows of the CSV by scenario, arrivals, load and mode."""
    return {(row['scenario'], row['arrivals'], float(row['load']), row['mode']): row
            for row in csv.DictReader(lines)}


def loads(rows):
    return sorted({key[2] for key in rows})


def text(x, y, content, anchor='start', size=11):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
            f'font-size="{size}">{content}</text>')


def panel(rows, scenario, arrivals, title, left, top):
    """Returns the SVG of one panel, which shows goodput as a fraction of the offered load."""
    steps = loads(rows)
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(i):
        return left + LEFT + width * i / (len(steps) - 1)

    def y(part):
        return top + TOP + height * (1 - part)

    out = [text(left + LEFT, top + 16, title, size=12)]
    for part in (0, 0.5, 1):
        out.append(f'<line x1="{x(0):.1f}" y1="{y(part):.1f}" x2="{x(len(steps) - 1):.1f}" '
                   f'y2="{y(part):.1f}" stroke="#dddddd"/>')
        out.append(text(left + LEFT - 4, y(part) + 4, f'{part:g}', 'end', 10))
    for i, load in enumerate(steps):
        out.append(text(x(i), y(0) + 14, f'{load:g}x', 'middle', 9))
    for column, mode, _, colour in LINES:
        points = ' '.join(
            f'{x(i):.1f},{y(float(rows[scenario, arrivals, load, mode][column])):.1f}'
            for i, load in enumerate(steps))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return out


def picture(rows):
    lines = -(-len(PANELS) // COLUMNS)
    width, height = COLUMNS * WIDTH, lines * HEIGHT + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" font-family="sans-serif">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for i, (scenario, arrivals, title) in enumerate(PANELS):
        out += panel(rows, scenario, arrivals, title, i % COLUMNS * WIDTH, i // COLUMNS * HEIGHT)
    for i, (_, _, name, colour) in enumerate(LINES):
        at = LEFT + 120 * i
        out.append(f'<line x1="{at}" y1="{height - 12}" x2="{at + 24}" y2="{height - 12}" '
                   f'stroke="{colour}" stroke-width="2"/>')
        out.append(text(at + 30, height - 8, name))
    return '\n'.join(out + ['</svg>', ''])


def table(rows):
    """Returns the Markdown table with a row for each panel.

    Each cell contains three goodputs, in percent of the offered load. They are the goodputs of
    BatchQueue in latency mode, of FixedQueue, and of a server without batching. The last column
    is only about BatchQueue in latency mode. It contains the percentage of the computed images
    that were late, at the load with the highest percentage.
    """
    out = ['| | ' + ' | '.join(f'{load:g}x' for load in TABLE_LOADS) + ' | wasted |',
           '|---' * (len(TABLE_LOADS) + 2) + '|']
    for scenario, arrivals, title in PANELS:
        cells = []
        for load in TABLE_LOADS:
            ours, fixed = (rows[scenario, arrivals, load, mode] for mode in ('latency', 'fixed'))
            parts = (ours['part_of_offered'], fixed['part_of_offered'], ours['one_by_one'])
            cells.append(' / '.join(f'{100 * float(part):.0f}' for part in parts))
        wasted = max(float(row['wasted']) for key, row in rows.items()
                     if key[:2] == (scenario, arrivals) and key[3] == 'latency')
        out.append(f'| {title} | ' + ' | '.join(cells) + f' | {100 * wasted:.1f} % |')
    return '\n'.join(out + [''])


def replaced(page, new):
    """Returns the page with the text between its marks replaced by `new`."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + new + END + rest.split(END)[1]


def main():
    folder = pathlib.Path(sys.argv[1])
    rows = read(sys.stdin)
    (folder / 'goodput.svg').write_text(picture(rows))
    page = folder / 'serving.md'
    page.write_text(replaced(page.read_text(), table(rows)))


if __name__ == '__main__':
    main()
