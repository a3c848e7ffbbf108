"""Draws a training run: its losses and figures by step.

    loss_curve.draw(run / 'curve.png', {'loss': [(0, 2.3), (64, 1.9)], 'accuracy': [(64, 0.4)]})

Curves whose names begin with "loss" are in the upper panel, which begins at 0. All others, such as
"accuracy" or "AP50", are fractions of 1 in the lower panel. A panel without curves is left out.
"""

import math

from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 800, 300  # The size of a panel.
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 34, 46  # Margins around a panel's axes.
FRAME, GRID, INK = (120, 120, 120), (226, 226, 226), (30, 30, 30)
COLOURS = ((31, 92, 170), (214, 96, 20), (35, 132, 67), (160, 40, 110), (110, 110, 30),
           (90, 90, 90))


def font(size):
    try:
        return ImageFont.load_default(size)
    except TypeError:  # Pillow before 10.1 has one size.
        return ImageFont.load_default()


def ticks(top, count=5):
    """Returns round numbers from 0 to `top` or a little more, about `count` of them."""
    step = 10.0 ** math.floor(math.log10(top / count))
    step *= next((m for m in (1, 2, 5) if top / (step * m) <= count), 10)
    return [i * step for i in range(math.ceil(top / step - 1e-9) + 1)]


def short(value):
    """Formats a number: 12000 as 12k, 2500000 as 2.5M."""
    for unit, letter in ((1e6, 'M'), (1e3, 'k')):
        if value >= 10 * unit or (value >= unit and letter == 'M'):
            return f'{value / unit:g}{letter}'
    return f'{value:g}'


class Panel:
    """The axes of some curves in a picture, with a legend."""

    def __init__(self, canvas, y, title, steps, values):
        self.draw, self.font = canvas, font(14)
        self.x0, self.x1 = LEFT, WIDTH - RIGHT
        self.y0, self.y1 = y + HEIGHT - BOTTOM, y + TOP
        self.xs, self.ys = ticks(steps, 8), ticks(values)
        self.width, self.height = steps, self.ys[-1]
        self.axes(title, y)
        self.legend_x = self.x1

    def place(self, step, value):
        return (self.x0 + (self.x1 - self.x0) * step / self.width,
                self.y0 + (self.y1 - self.y0) * min(value / self.height, 1))

    def text(self, at, words, anchor, fill=INK):
        """Writes `words` at the point `at`. The point is at the left end, the middle or the right
        end of the words (`anchor` l, m or r). Its y is the middle of a capital letter, so words at
        the same y share a baseline.
        """
        width = self.draw.textlength(words, font=self.font)
        _, top, _, bottom = self.draw.textbbox((0, 0), 'H', font=self.font)
        x = at[0] - {'l': 0, 'm': width / 2, 'r': width}[anchor]
        self.draw.text((x, at[1] - (top + bottom) / 2), words, font=self.font, fill=fill)

    def axes(self, title, y):
        for value in self.ys:
            at = self.place(0, value)
            self.draw.line([at, (self.x1, at[1])], fill=GRID)
            self.text((self.x0 - 8, at[1]), f'{value:g}', 'r')
        for step in self.xs:
            if step <= self.width:
                x = self.place(step, 0)[0]
                self.draw.line([(x, self.y0), (x, self.y0 + 5)], fill=FRAME)
                self.text((x, self.y0 + 14), short(step), 'm')
        self.draw.rectangle([self.x0, self.y1, self.x1, self.y0], outline=FRAME)
        self.text((self.x0, y + TOP / 2), title, 'l')
        self.text(((self.x0 + self.x1) / 2, self.y0 + 33), 'step', 'm')

    def curve(self, name, points, colour):
        points = [self.place(*point) for point in points]
        self.draw.line(points, fill=colour, width=2, joint='curve')
        if len(points) < 40:
            for x, y in points:
                self.draw.ellipse([x - 3, y - 3, x + 3, y + 3], fill=colour)
        self.text((self.legend_x, self.y1 - TOP / 2), name, 'r', colour)
        self.legend_x -= self.draw.textlength(name, font=self.font) + 16


class Curve:
    """The points of a curve that grows during a run. If there are `most` points, each pair becomes
    one point, the mean of the two. Later points are means of twice as many steps. `state` is a list
    that restores the curve.
    """

    def __init__(self, most=400, state=None):
        self.most = most
        self.every, self.points, self.waiting = state or (1, [], [])

    @property
    def state(self):
        return [self.every, self.points, self.waiting]

    def add(self, step, value):
        self.waiting.append(value)
        if len(self.waiting) < self.every:
            return
        self.points.append((step, sum(self.waiting) / len(self.waiting)))
        self.waiting = []
        if len(self.points) == self.most:
            self.points = [(second[0], (first[1] + second[1]) / 2)
                           for first, second in zip(self.points[::2], self.points[1::2])]
            self.every *= 2


def draw(path, curves):
    """Writes a PNG of curves, which are lists of (step, value) by name. Values that are not finite
    are left out. If no value remains, nothing is written."""
    curves = {name: [(s, v) for s, v in points if math.isfinite(v)]
              for name, points in curves.items()}
    losses = {n: p for n, p in curves.items() if p and n.startswith('loss')}
    shares = {n: p for n, p in curves.items() if p and not n.startswith('loss')}
    panels = [(title, group) for title, group in (('loss', losses), ('share of one', shares))
              if group]
    if not panels:
        return
    image = Image.new('RGB', (WIDTH, HEIGHT * len(panels)), 'white')
    steps = max(1, *(s for _, group in panels for points in group.values() for s, _ in points))
    for i, (title, group) in enumerate(panels):
        top = 1 if group is shares else max(v for points in group.values() for _, v in points)
        panel = Panel(ImageDraw.Draw(image), i * HEIGHT, title, steps, max(top, 1e-6))
        for (name, points), colour in zip(group.items(), COLOURS * len(group)):
            panel.curve(name, points, colour)
    image.save(path, 'PNG', optimize=True)
