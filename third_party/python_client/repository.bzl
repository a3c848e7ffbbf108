"""@python_client//:wheels are those below `.deps/python_client`; none where set-up has not fetched them."""

def _impl(ctx):
    folder = ctx.path(str(ctx.path(Label("//:WORKSPACE")).dirname) + "/.deps/python_client/wheels")
    if folder.exists:
        ctx.symlink(folder, "wheels")
    ctx.file("BUILD", """
filegroup(
    name = "wheels",
    srcs = glob(["wheels/*.whl"]),
    visibility = ["//visibility:public"],
)
""")

python_client_repository = repository_rule(
    implementation = _impl,
    local = True,
)
