"""Makes Markdown tables and their cells. A cell without a figure is "-"."""


def table(head, rows):
    lines = [head, ['---'] * len(head), *rows]
    return '\n'.join('| ' + ' | '.join(map(str, line)) + ' |' for line in lines)


def number(value):
    return f'{value:.0f}' if value else '-'


def cell(value):
    return f'{value:.1f}' if value is not None else '-'


def us(value):
    return f'{value:.2f}' if value is not None else '-'


def ratio(a, b):
    return f'{a / b:.2f}x' if a and b else '-'
