"""Compares the answers of two servers for the same pictures."""

import math
import statistics


def logits_of(answer, classes):
    """Returns {class: logit} of a picture, without a constant that is the same for all classes.
    These are the logarithms of the scores minus their mean. Raises ValueError unless each of
    `classes` classes has a score.
    """
    scores = {one['class_id']: one['score'] for one in answer['categories']}
    if len(scores) != classes:
        raise ValueError(f'{answer.get("file")}: expected {classes} scores, got {len(scores)}')
    if not all(math.isfinite(score) and score >= 0 for score in scores.values()):
        raise ValueError(f'{answer.get("file")}: a score is negative or not finite')
    # A score may be too small for fp32 and thus 0.
    logs = {label: math.log(max(score, 1e-38)) for label, score in scores.items()}
    mean = statistics.fmean(logs.values())
    return {label: value - mean for label, value in logs.items()}


def deviation(got, expected, classes):
    """Compares two lists of answers. Returns the largest difference of a logit, in standard
    deviations of a picture's logits, and the number of pictures with the same first class.
    """
    if [one['file'] for one in got] != [one['file'] for one in expected]:
        raise ValueError('the answers are about different pictures')
    worst, same = 0, 0
    for one, other in zip(got, expected):
        a, b = logits_of(one, classes), logits_of(other, classes)
        spread = statistics.pstdev(b.values()) or 1
        worst = max(worst, max(abs(a[label] - b[label]) for label in b) / spread)
        same += max(a, key=a.get) == max(b, key=b.get)
    return worst, same
