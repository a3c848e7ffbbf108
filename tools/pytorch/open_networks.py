"""The classifiers of tools/checkpoint/open_weights.py, by their family."""

import classifier_files  # noqa: F401  Finds tools/checkpoint.
import efficient_vim
import mambaout
import vmamba
from checkpoint.open_names import EFFICIENTVIM, MAMBAOUT, VMAMBA

NETWORKS = {MAMBAOUT: mambaout.MambaOut, EFFICIENTVIM: efficient_vim.EfficientViM,
            VMAMBA: vmamba.VMamba}
