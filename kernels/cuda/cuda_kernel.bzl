"""A CUDA kernel: <op>_cuda.h and <op>_cuda.cu."""

load("//third_party/cuda:cuda_library.bzl", "cuda_library")

# Makes Bazel skip a target unless --config=cuda is set.
CUDA_ONLY = select({
    "//:cuda": [],
    "//conditions:default": ["@platforms//:incompatible"],
})

def cuda_kernel(name, srcs = None, hdrs = None, deps = [], contract = True, **kwargs):
    """Defines library `name`, which is built only with --config=cuda.

    Target `name`_header has only the header and needs no CUDA. The emulator
    uses this target and the .cu files (tests/emulator/emulated_kernel.bzl). The
    output group `ptxas` of <stem>_object has the messages of ptxas for file
    <stem>.cu.

    Args:
      name: the library's name.
      srcs: .cu files. The default is <name>.cu.
      hdrs: headers. The default is <name>.h.
      deps: cc_library targets that headers and sources include.
      contract: whether nvcc may round a * b + c once. If False, nvcc rounds the
        product and the sum, as a host compiler does.
      **kwargs: visibility, testonly.
    """
    srcs = srcs or [name + ".cu"]
    header = name + "_header"
    native.cc_library(
        name = header,
        hdrs = hdrs or [name + ".h"],
        deps = deps + ["//kernels/cuda:cuda_stream"],
        **kwargs
    )
    native.exports_files(srcs, visibility = ["//tests:__subpackages__"])
    objects = []

    # A linker searches for missing symbols only in later objects. The object
    # with the name of the library calls the others, so it comes first.
    first = [src for src in srcs if src == name + ".cu"]
    for src in first + [src for src in srcs if src not in first]:
        stem = src[:-len(".cu")]
        objects.append(":" + stem + "_object")
        cuda_library(
            name = stem + "_object",
            src = src,
            contract = contract,
            target_compatible_with = CUDA_ONLY,
            deps = [
                ":" + header,
                "//kernels/cuda:simt",
            ],
            **kwargs
        )
    native.cc_library(
        name = name,
        target_compatible_with = CUDA_ONLY,
        deps = objects + [
            ":" + header,
            "@cuda//:cudart",
        ],
        **kwargs
    )

def cuda_objects(name):
    """Defines targets for all cuda_kernel rules above this call.

    Target `name` has the compiled objects and `name`_ptxas has the messages of
    ptxas. Target `name`_sources has all .cu files of the folder.
    """
    objects = [
        ":" + rule["name"]
        for rule in native.existing_rules().values()
        if rule["kind"] == "cuda_library"
    ]
    native.filegroup(
        name = name,
        srcs = objects,
    )
    native.filegroup(
        name = name + "_ptxas",
        srcs = objects,
        output_group = "ptxas",
    )
    native.filegroup(
        name = name + "_sources",
        srcs = native.glob(["*.cu"]),
    )
