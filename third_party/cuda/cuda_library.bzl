"""cuda_library: compiles one .cu file with nvcc and is to others a cc_library."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@cuda//:config.bzl", "ARCHS", "NVCC")

# Keeps what ptxas says of registers and spills, and shows the rest.
_COMPILE = """
report=$1; shift
"$@" 2> "$report" || { cat "$report" >&2; exit 1; }
grep -v -E '^ptxas info|bytes stack frame' "$report" >&2 || true
"""

def _archs(ctx):
    """Returns what to compile for: --define=cuda_archs=90,100, else all of @cuda."""
    chosen = ctx.var.get("cuda_archs")
    if not chosen:
        return ARCHS
    archs = chosen.split(",")
    unknown = [arch for arch in archs if arch not in ARCHS]
    if unknown:
        fail("cuda_archs: expected some of %s, got %s" % (",".join(ARCHS), chosen))
    return archs

def _impl(ctx):
    if not NVCC:
        fail("no nvcc: run deploy/setup.sh --cuda or set CUDA_HOME")
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    merged = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    compilation = merged.compilation_context

    source = ctx.file.src
    object = ctx.actions.declare_file(ctx.label.name + ".o")
    report = ctx.actions.declare_file(ctx.label.name + ".ptxas.txt")
    args = ctx.actions.args()
    args.add(report)
    args.add(NVCC)
    args.add_all(["-c", source, "-o", object])
    args.add_all([
        "-O3",
        "-std=c++17",
        "--expt-relaxed-constexpr",
        "-lineinfo",
        "-compress-mode=size",  # A fifth, line numbers included.
        "-Xcompiler=-fPIC",
        "-Xptxas=-v",
    ])
    if not ctx.attr.contract:
        args.add("-fmad=false")
    archs = _archs(ctx)
    for arch in archs:
        codes = "sm_%s" % arch
        if arch == archs[-1]:
            codes = "[%s,compute_%s]" % (codes, arch)
        args.add("-gencode=arch=compute_%s,code=%s" % (arch, codes))
    args.add("-I.")
    args.add_all(compilation.quote_includes, before_each = "-I")
    args.add_all(compilation.includes, before_each = "-I")
    args.add_all(compilation.system_includes, before_each = "-isystem")
    args.add_all(compilation.defines, before_each = "-D")
    ctx.actions.run_shell(
        command = _COMPILE,
        arguments = [args],
        inputs = depset([source] + ctx.files._nvcc, transitive = [compilation.headers]),
        outputs = [object, report],
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s with nvcc" % source.short_path,
        use_default_shell_env = True,
    )

    outputs = cc_common.create_compilation_outputs(
        objects = depset([object]),
        pic_objects = depset([object]),
    )
    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        compilation_outputs = outputs,
        name = ctx.label.name,
        linking_contexts = [merged.linking_context],
    )
    return [
        DefaultInfo(files = depset([object])),
        CcInfo(compilation_context = compilation, linking_context = linking),
        OutputGroupInfo(ptxas = depset([report])),
    ]

cuda_library = rule(
    implementation = _impl,
    attrs = {
        "src": attr.label(allow_single_file = [".cu"], mandatory = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "contract": attr.bool(
            default = True,
            doc = "Whether a * b + c may be rounded once instead of twice.",
        ),
        "_nvcc": attr.label(default = "@cuda//:compiler"),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    doc = """One object file for every architecture of @cuda, or those of --define=cuda_archs.

The output group `ptxas` is what ptxas says of each kernel's registers, stack
and spills. `deps` are cc_library.""",
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)
