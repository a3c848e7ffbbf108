"""COCO's average precision at IoU 0.5, and the mean IoU of maps."""

import numpy as np

RECALLS = np.linspace(0, 1, 101)
IOU = 0.5


def box_iou(a, b):
    """Returns the IoU [n,m] of boxes [n,4] with boxes [m,4]."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    both = np.prod((high - low).clip(0), axis=2)
    areas = [np.prod(x[:, 2:] - x[:, :2], axis=1) for x in (a, b)]
    return both / np.maximum(areas[0][:, None] + areas[1] - both, 1e-9)


def mask_iou(a, b):
    """Returns the IoU [n,m] of masks [n,H,W] with masks [m,H,W]."""
    a, b = (x.reshape(len(x), np.prod(x.shape[1:])).astype(np.float32) for x in (a, b))
    both = a @ b.T
    return both / np.maximum(a.sum(1)[:, None] + b.sum(1) - both, 1)


def match(iou):
    """Returns bool [n]: whether each detection finds an object that no better detection has found.
    `iou` is [n,m] for n detections and m objects. The best detection is first."""
    free = np.ones(iou.shape[1], bool)
    right = np.zeros(len(iou), bool)
    for row, values in enumerate(iou):
        values = np.where(free, values, -1)
        if values.size and values.max() >= IOU:
            free[values.argmax()], right[row] = False, True
    return right


class Precision:
    """AP50 by class over many pictures. Call add() for each picture, then mean()."""

    def __init__(self, classes):
        self.objects = np.zeros(classes, np.int64)
        # For each class, a list of (score, whether it found an object) of the detections.
        self.rows = [[] for _ in range(classes)]

    def add(self, iou, scores, labels, true_labels):
        """Adds a picture with n detections and m objects. `iou` is [n,m]. `scores` and `labels` are
        the detections' [n], with the best detection first. `true_labels` are the objects' [m].
        """
        self.objects += np.bincount(true_labels, minlength=len(self.objects))
        for k in np.unique(labels):
            mine = labels == k
            right = match(iou[mine][:, true_labels == k])
            self.rows[k] += zip(scores[mine].tolist(), right.tolist())

    def of_class(self, k):
        """Returns the AP50 of a class that has objects."""
        rows = sorted(self.rows[k], key=lambda row: -row[0])
        right = np.cumsum([row[1] for row in rows])
        precision = right / np.arange(1, len(rows) + 1)
        best = np.maximum.accumulate(precision[::-1])[::-1]
        at = np.searchsorted(right / self.objects[k], RECALLS)
        return float(np.append(best, 0)[at].mean())

    def mean(self):
        """Returns the mean over the classes that have objects, or None if there are no objects."""
        found = [self.of_class(k) for k in np.nonzero(self.objects)[0]]
        return float(np.mean(found)) if found else None


class MeanIou:
    """The mean IoU as `sfmamba eval` computes it. It is the mean over the classes that occur in the
    true or the predicted map of any picture.
    """

    def __init__(self, classes, ignore):
        self.ignore, self.counts = ignore, np.zeros((classes, classes), np.int64)

    def add(self, right, answer):
        """Adds a picture. `right` is its true map and `answer` is its predicted map, both [H,W]."""
        counted = right != self.ignore
        both = right[counted].astype(np.int64) * len(self.counts) + answer[counted]
        self.counts += np.bincount(both, minlength=self.counts.size).reshape(self.counts.shape)

    def mean(self, taught):
        """Returns the mean over the classes that the mask `taught` [classes] selects. Returns None
        if the true maps have no pixel of these classes.
        """
        if not self.counts[taught].any():
            return None
        hit = self.counts.diagonal()
        union = self.counts.sum(0) + self.counts.sum(1) - hit
        counted = taught & (union > 0)
        return float((hit[counted] / union[counted]).mean())
