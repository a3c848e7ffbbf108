"""Compiles the server's .proto files into sfmamba/messages.binpb. The package's metadata and all
other settings are in pyproject.toml."""

import pathlib
import shutil

import grpc_tools
from grpc_tools import protoc
from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = ['sfmamba/v1/vision.proto', 'google/rpc/error_details.proto', 'google/rpc/status.proto',
          'grpc/health/v1/health.proto']


def proto_folder():
    """Returns the folder with the .proto files. In an sdist it is beside this file, otherwise in
    the repository's root."""
    beside = HERE / 'proto'
    return beside if beside.is_dir() else HERE.parents[1] / 'proto'


class BuildMessages(build_py):
    """Adds the descriptors of the messages to the package."""

    def run(self):
        super().run()
        folder = HERE if getattr(self, 'editable_mode', False) else pathlib.Path(self.build_lib)
        well_known = pathlib.Path(grpc_tools.__file__).parent / '_proto'
        failed = protoc.main(['protoc', f'-I{proto_folder()}', f'-I{well_known}',
                              '--include_imports',
                              f'--descriptor_set_out={folder / "sfmamba" / "messages.binpb"}',
                              *PROTOS])
        if failed:
            raise RuntimeError('protoc failed')


class SourcesWithProtos(sdist):
    """Adds the .proto files to the sdist."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for name in PROTOS:
            copy = pathlib.Path(base_dir, 'proto', name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(proto_folder() / name, copy)


setup(cmdclass={'build_py': BuildMessages, 'sdist': SourcesWithProtos})
