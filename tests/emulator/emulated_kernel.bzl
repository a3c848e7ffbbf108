"""A CUDA kernel for the host: its unmodified .cu files and the emulator."""

def emulated_kernel(name, srcs = None, kernel = None):
    """Library `name` with the header and the launchers of `kernel`.

    Args:
      name: the library's name.
      srcs: the .cu files of `kernel`; <its name>.cu if not given.
      kernel: a cuda_kernel; //kernels:<name> if not given.
    """
    package, kernel_name = (kernel or "//kernels:" + name).split(":")
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
