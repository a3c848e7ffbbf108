"""Mamba's selective scan and causal convolution on CPUs.

selective_scan_fn and causal_conv1d_fn take the same arguments as the functions of these names
in mamba-ssm and causal-conv1d. README.md has measured times and limits.
"""

from sfmamba_scan._version import __version__
from sfmamba_scan.functions import causal_conv1d_fn, selective_scan_fn, selective_scan_ref
from sfmamba_scan.shim import install_shim

__all__ = ['__version__', 'causal_conv1d_fn', 'install_shim', 'selective_scan_fn',
           'selective_scan_ref']
