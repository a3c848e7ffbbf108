"""A CUDA kernel: <op>_cuda.h and <op>_cuda.cu."""

load("//third_party/cuda:cuda_library.bzl", "cuda_library")

# Without --config=cuda the target is skipped.
CUDA_ONLY = select({
    "//:cuda": [],
    "//conditions:default": ["@platforms//:incompatible"],
})

def cuda_kernel(name, srcs = None, hdrs = None, deps = [], contract = True, **kwargs):
    """Library `name`, for --config=cuda only.

    Its header alone is `name`_header, which needs no CUDA; the emulator takes
    that and the .cu files (tests/emulator/emulated_kernel.bzl). What ptxas says
    of each file <stem>.cu is the output group `ptxas` of <stem>_object.

    Args:
      name: the library's name.
      srcs: .cu files; <name>.cu if not given.
      hdrs: headers; <name>.h if not given.
      deps: cc_library that headers and sources include.
      contract: whether nvcc may round a * b + c once; without, results are those
        of a host compiler.
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

    # A linker looks for what an object lacks in those behind it: the one that
    # is called like the library, which calls the others, is the first.
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
    """What was compiled of every cuda_kernel above: `name`, objects; `name`_ptxas, reports; `name`_sources, all of the folder's .cu files."""
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
