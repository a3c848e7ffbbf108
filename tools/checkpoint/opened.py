"""Opens a checkpoint of any layout. Finds its tensors and the model that they belong to.

    opened = open_checkpoint('epoch_36.pth')
    opened.variant, opened.tokens, opened.network.classes
    opened.tensors['backbone.patch_embed.conv_down.0.weight'].array()

Needs only NumPy, and tools/ on Python's path. Nothing in the file is executed. The data of a
tensor is read only by its array().
"""

import dataclasses

from checkpoint import vmamba
from checkpoint.choice import Choice, choose
from checkpoint.descriptions import describe, family
from checkpoint.files import Files, read_files
from checkpoint.labels import stored_labels
from checkpoint.network import Network, Unclear, read_network
from checkpoint.state_dict import StateDict, read_state_dict
from checkpoint.tensor import CheckpointError
from checkpoint.variants import CUSTOM, find_row

NOUNS = {'CLASSIFICATION': 'classifier', 'DETECTION': 'detector', 'SEGMENTATION': 'segmenter'}


@dataclasses.dataclass(frozen=True)
class Opened:
    tensors: dict      # A checkpoint.tensor.Tensor for each name of the model.
    network: Network   # Task, shapes, number of classes.
    variant: str       # sf_mamba_t, mamba_vision_l3_512_21k, ..., or custom.
    tokens: str        # swap (SF-Mamba), none (MambaVision) or None (VMamba).
    evidence: str      # A line: what was found, and the evidence for it.
    facts: dict        # What the file contains besides tensors, such as "meta" and "args".
    choice: Choice     # What else config.textproto says.
    state: StateDict
    files: Files

    @property
    def labels(self):
        """The names of the classes, or None if none are stored. Raises CheckpointError like
        stored_labels()."""
        return stored_labels(self.files, self.facts, self.network.classes)


def _evidence(network, choice, state):
    text = (f'{choice.variant}, a {NOUNS[network.task]} of {network.classes} classes: '
            f'{family(choice.tokens) if choice.tokens else "VMamba"} {choice.why}')
    return text + (f'; weights: {state.origin}' if state.origin else '')


def open_checkpoint(path, weights=None, prefix=None, variant=None, tokens=None):
    """Returns the Opened of a file or folder. Raises CheckpointError if something is wrong or
    unclear.

    The other arguments state facts that the file alone may not tell. None means that the file tells
    the fact. `weights` is the name of the dictionary that contains the tensors. `prefix` is the
    common prefix of the tensors' names. `variant` and `tokens` are explained in Opened.
    """
    files = read_files(path)
    state = read_state_dict(files.value, weights, prefix)
    try:
        network = read_network({name: tensor.shape for name, tensor in state.tensors.items()})
    except Unclear as error:
        raise CheckpointError(f'the model cannot be told from its tensors: {error}; '
                              f'{state.choices}') from error
    choice = choose(network, describe(files, state.facts), variant, tokens, files.config)
    if choice.variant not in (CUSTOM, *vmamba.ROWS):
        row = find_row(choice.variant)[0].backbone
        backbone = dataclasses.replace(row, attention=network.backbone.attention,
                                       learnable=network.backbone.learnable)
        network = dataclasses.replace(network, backbone=backbone)
    return Opened(state.tensors, network, choice.variant, choice.tokens,
                  _evidence(network, choice, state), state.facts,
                  choice, state, files)
