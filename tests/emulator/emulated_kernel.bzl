"""A CUDA kernel for the host: its unmodified .cu files and the emulator."""

def emulated_kernel(name, kernel, srcs = None):
    """Library `name` with the header and the launchers of `kernel`.

    Args:
      name: the library's name.
      kernel: a cuda_kernel.
      srcs: the .cu files of `kernel`; <its name>.cu if not given.
    """
    package, kernel_name = kernel.split(":")
    srcs = srcs or [kernel_name + ".cu"]
    wrappers = [name + "_" + src[:-len(".cu")] + ".cc" for src in srcs]
    for src, wrapper in zip(srcs, wrappers):
        native.genrule(
            name = wrapper[:-len(".cc")] + "_wrapper",
            testonly = True,
            outs = [wrapper],
            cmd = "echo '#include \"%s/%s\"' > $@" % (package[2:], src),
            visibility = ["//visibility:private"],
        )
    native.cc_library(
        name = name,
        testonly = True,
        srcs = wrappers,
        copts = ["-Wno-unknown-pragmas"],
        textual_hdrs = [package + ":" + src for src in srcs],
        deps = [
            package + ":" + kernel_name + "_header",
            "//tests/emulator:simt",
        ],
    )
