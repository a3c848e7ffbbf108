#!/usr/bin/env python3
"""Writes the properties of this machine's GPU as JSON. With this file, cuDNN 9.8 and later can make
plans on a machine without a GPU (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).

  python device_properties.py --out device_properties.json
"""

import argparse
import ctypes
import pathlib
import sys

# These constants are defined in cudnn_graph.h.
DESCRIPTOR, DEVICE_ID, JSON, INT32, CHAR = 38, 2700, 2702, 23, 24


class Cudnn:
    def __init__(self, library):
        """`library` is a loaded libcudnn. If a call fails, it raises RuntimeError with cuDNN's
        reason.
        """
        self.library = library
        library.cudnnGetErrorString.restype = ctypes.c_char_p

    def __getattr__(self, name):
        def call(*arguments):
            status = getattr(self.library, f'cudnnBackend{name}')(*arguments)
            if status:
                reason = self.library.cudnnGetErrorString(status).decode()
                raise RuntimeError(f'cudnnBackend{name}: {reason}')
        return call


def device_properties(cudnn, device=0):
    """Returns the GPU's properties as bytes of JSON."""
    descriptor = ctypes.c_void_p()
    cudnn.CreateDescriptor(DESCRIPTOR, ctypes.byref(descriptor))
    number, size = ctypes.c_int32(device), ctypes.c_int64()
    cudnn.SetAttribute(descriptor, DEVICE_ID, INT32, ctypes.c_int64(1), ctypes.byref(number))
    cudnn.Finalize(descriptor)
    cudnn.GetAttribute(descriptor, JSON, CHAR, ctypes.c_int64(0), ctypes.byref(size), None)
    text = ctypes.create_string_buffer(size.value)
    cudnn.GetAttribute(descriptor, JSON, CHAR, size, ctypes.byref(size), text)
    cudnn.DestroyDescriptor(descriptor)
    return text.raw[:size.value].rstrip(b'\0')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    import torch  # Loads the libraries.
    if not torch.cuda.is_available():
        print('skipped: no GPU')
        return 0
    torch.zeros(1, device='cuda')
    text = device_properties(Cudnn(ctypes.CDLL('libcudnn.so.9')))
    arguments.out.write_bytes(text)
    print(f'{arguments.out}: {len(text)} bytes, {text[:200]}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
