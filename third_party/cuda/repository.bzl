"""Makes @cuda from an installed CUDA toolkit: CUDA_HOME names it, else /usr/local/cuda, else `.deps/cuda` below the workspace.

Without one the repository is empty: only --config=cuda needs it.
"""

# Multiprocessors that kernels are compiled for, if nvcc knows them: A100, H100
# and H200, B200, RTX 50. Later ones run the PTX of the last.
_ARCHS = ["80", "90", "100", "120"]

def _toolkit(ctx, workspace):
    """Returns the folder that holds bin/nvcc, or None."""
    home = ctx.os.environ.get("CUDA_HOME")
    if home:
        folders = [home]
    else:
        folders = ["/usr/local/cuda", workspace + "/.deps/cuda/nvidia/cu13"]
    for folder in folders:
        if ctx.path(folder + "/bin/nvcc").exists:
            return folder
    return None

def _disassembler(ctx, workspace, toolkit):
    """Returns the folder of cuobjdump and nvdisasm, or None."""
    for folder in [toolkit + "/bin", workspace + "/.deps/cuda-disassembler/nvidia/cu13/bin"]:
        if ctx.path(folder + "/cuobjdump").exists and ctx.path(folder + "/nvdisasm").exists:
            return folder
    return None

def _cudart(ctx, workspace, toolkit):
    """Returns the libcudart that libtorch_cuda.so finds, so that a process has one."""
    libtorch = ctx.os.environ.get("LIBTORCH") or workspace + "/.deps/libtorch/torch"
    for folder in [libtorch + "/../nvidia/cu13/lib", libtorch + "/lib", toolkit + "/lib64"]:
        if ctx.path(folder + "/libcudart.so.13").exists:
            return folder, "libcudart.so.13"
    return toolkit + "/lib64", "libcudart.so"

def _impl(ctx):
    workspace = str(ctx.path(Label("//:WORKSPACE")).dirname)
    toolkit = _toolkit(ctx, workspace)
    if not toolkit:
        ctx.file("config.bzl", 'NVCC = ""\nARCHS = []\n')
        ctx.file("BUILD", """
package(default_visibility = ["//visibility:public"])

filegroup(name = "compiler")

filegroup(name = "disassembler")

cc_library(name = "headers")

cc_library(name = "cudart")
""")
        return
    nvcc = toolkit + "/bin/nvcc"
    listed = ctx.execute([nvcc, "--list-gpu-arch"])
    if listed.return_code:
        fail("%s --list-gpu-arch failed: %s" % (nvcc, listed.stderr))
    known = listed.stdout.split("\n")
    archs = [a for a in _ARCHS if "compute_" + a in known]
    ctx.file("config.bzl", "NVCC = %r\nARCHS = %r\n" % (nvcc, archs))

    # Only so that another nvcc compiles anew: it is run where it is installed.
    ctx.symlink(nvcc, "nvcc")
    ctx.symlink(toolkit + "/include", "include")
    disassembler = _disassembler(ctx, workspace, toolkit)
    if disassembler:
        ctx.symlink(disassembler + "/cuobjdump", "cuobjdump")
        ctx.symlink(disassembler + "/nvdisasm", "nvdisasm")
    folder, library = _cudart(ctx, workspace, toolkit)
    ctx.file("BUILD", """
package(default_visibility = ["//visibility:public"])

filegroup(
    name = "compiler",
    srcs = ["nvcc"],
)

filegroup(
    name = "disassembler",
    srcs = glob(["cuobjdump", "nvdisasm"], allow_empty = True),
)

cc_library(
    name = "headers",
    hdrs = glob(
        ["include/**/*.h", "include/**/*.hpp"],
        exclude = ["include/cccl/**"],
    ),
    includes = ["include"],
)

cc_library(
    name = "cudart",
    linkopts = ["-L{folder}", "-Wl,-rpath,{folder}", "-l:{library}"],
    deps = [":headers"],
)
""".format(folder = folder, library = library))

cuda_repository = repository_rule(
    implementation = _impl,
    environ = ["CUDA_HOME", "LIBTORCH"],
    local = True,
)
