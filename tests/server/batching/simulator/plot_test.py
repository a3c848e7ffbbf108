"""Tests the picture and the table that plot.py makes from the simulator's CSV."""

import pathlib
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import plot  # noqa: E402


def csv_lines():
    yield 'scenario,arrivals,load,mode,part_of_offered,one_by_one,wasted'
    for scenario, arrivals, _ in plot.PANELS:
        for load in (0.3,) + plot.TABLE_LOADS:
            yield f'{scenario},{arrivals},{load},latency,{min(1, 0.9 / load):.3f},1.000,0.0123'
            yield f'{scenario},{arrivals},{load},fixed,0.500,1.000,0.9'


class PlotTest(unittest.TestCase):
    def setUp(self):
        self.rows = plot.read(csv_lines())

    def test_picture_is_xml_with_a_line_for_each_mode_and_panel(self):
        root = xml.etree.ElementTree.fromstring(plot.picture(self.rows))
        lines = root.findall('{http://www.w3.org/2000/svg}polyline')
        self.assertEqual(len(lines), len(plot.PANELS) * len(plot.LINES))
        for line in lines:
            points = [tuple(map(float, p.split(','))) for p in line.get('points').split()]
            self.assertEqual(len(points), 1 + len(plot.TABLE_LOADS))
            for x, y in points:
                self.assertTrue(0 <= x <= float(root.get('width')), x)
                self.assertTrue(0 <= y <= float(root.get('height')), y)

    def test_higher_goodput_is_higher_up(self):
        root = xml.etree.ElementTree.fromstring(plot.picture(self.rows))
        line = root.find('{http://www.w3.org/2000/svg}polyline')
        ys = [float(p.split(',')[1]) for p in line.get('points').split()]
        self.assertEqual(ys, sorted(ys))
        self.assertLess(ys[0], ys[-1])

    def test_table_compares_at_each_load(self):
        lines = plot.table(self.rows).splitlines()
        self.assertEqual(len(lines), 2 + len(plot.PANELS))
        for line in lines[2:]:
            self.assertIn('| 90 / 50 / 100 |', line)
            self.assertIn('| 45 / 50 / 100 |', line)
            self.assertTrue(line.endswith('| 1.2 % |'))

    def test_only_what_is_between_the_marks_is_replaced(self):
        page = 'a\n' + plot.BEGIN + 'old\n' + plot.END + '\nb\n'
        self.assertEqual(plot.replaced(page, 'new\n'),
                         'a\n' + plot.BEGIN + 'new\n' + plot.END + '\nb\n')


if __name__ == '__main__':
    unittest.main()
