"""Compares what two servers answer about the same pictures."""

import math
import statistics


def logits_of(answer, classes):
    """A picture's logits, but for a constant, by class: the logarithms of all scores less their
    mean. ValueError unless there is a score of each of `classes` classes."""
    scores = {one['class_id']: one['score'] for one in answer['categories']}
    if len(scores) != classes:
        raise ValueError(f'{answer.get("file")}: expected {classes} scores, got {len(scores)}')
    if not all(math.isfinite(score) and score >= 0 for score in scores.values()):
        raise ValueError(f'{answer.get("file")}: a score is negative or not finite')
    # A score may be too small for its fp32.
    logs = {label: math.log(max(score, 1e-38)) for label, score in scores.items()}
    mean = statistics.fmean(logs.values())
    return {label: value - mean for label, value in logs.items()}


def deviation(got, expected, classes):
    """The largest difference of a logit from the expected one, in standard deviations of a
    picture's logits, and how many pictures have the same first class; of two lists of answers."""
    if [one['file'] for one in got] != [one['file'] for one in expected]:
        raise ValueError('the answers are about different pictures')
    worst, same = 0, 0
    for one, other in zip(got, expected):
        a, b = logits_of(one, classes), logits_of(other, classes)
        spread = statistics.pstdev(b.values()) or 1
        worst = max(worst, max(abs(a[label] - b[label]) for label in b) / spread)
        same += max(a, key=a.get) == max(b, key=b.get)
    return worst, same
