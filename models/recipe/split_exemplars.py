"""Writes exemplars.tsv, which gives each furniture model a class and a split.

    python split_exemplars.py

classes.tsv maps the catalogue's names to classes. struck.tsv removes single models or gives them
another class. twins.tsv keeps very similar models in one split, for example one person in several
poses.
"""

import csv
import pathlib
import random
import re

import furniture

HERE = pathlib.Path(__file__).parent
SEED = 20
TEST, VALIDATION = 0.2, 0.1
MIN_TEST = 2  # Test exemplars per class, at least.


def read_table(name):
    with open(HERE / name, encoding='utf-8', newline='') as file:
        return list(csv.reader(file, delimiter='\t'))[1:]


def members(catalogue):
    """Yields (class, entry) of every exemplar."""
    label_of = {name: label for label, names in read_table('classes.tsv')
                for name in names.split(';')}
    moved = {id: label for id, label, _ in read_table('struck.tsv')}  # '-' removes a model.
    for entry in catalogue.values():
        label = moved.get(entry.id, label_of.get(entry.name))
        if label not in (None, '-'):
            yield label, entry


def group_of(entry, patterns):
    """Returns the name of the entry's group. Very similar models match one pattern and capture the
    same name. A model without a match is a group of its own."""
    for pattern in patterns:
        match = re.fullmatch(pattern, entry.id) or re.fullmatch(pattern, entry.name)
        if match:
            return ' '.join(match.groups()).lower()
    return entry.id


def split_class(groups, rng):
    """Shuffles the groups (lists of entries) and gives each group one split. Returns {entry id:
    split}."""
    count = sum(len(g) for g in groups)
    test, validation = max(MIN_TEST, round(TEST * count)), max(1, round(VALIDATION * count))
    groups = sorted(groups, key=lambda g: g[0].id)
    rng.shuffle(groups)
    splits, used = {}, {'test': 0, 'validation': 0}
    for group in groups:
        split = 'train'
        for name, wanted in (('test', test), ('validation', validation)):
            largest = max(wanted - used[name] + 1, 2)
            if name == 'test' and len(groups) < 6:
                largest = max(largest, count // 3)  # The class has a few large groups.
            if used[name] < wanted and len(group) <= largest:
                used[name] += len(group)
                split = name
                break
        splits |= {entry.id: split for entry in group}
    return splits


def main():
    rng = random.Random(SEED)
    patterns = [row[0] for row in read_table('twins.tsv')]
    classes = {}
    for label, entry in members(furniture.read_catalogue()):
        classes.setdefault(label, {}).setdefault(group_of(entry, patterns), []).append(entry)
    with open(HERE / 'exemplars.tsv', 'w', encoding='utf-8', newline='') as file:
        out = csv.writer(file, delimiter='\t', lineterminator='\n')
        out.writerow(['class', 'split', 'id', 'name', 'library', 'creator'])
        for label in sorted(classes):
            splits = split_class(list(classes[label].values()), rng)
            for group in classes[label].values():
                for e in group:
                    out.writerow([label, splits[e.id], e.id, e.name, e.library, e.creator])


if __name__ == '__main__':
    main()
