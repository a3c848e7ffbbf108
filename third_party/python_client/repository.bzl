"""Wheels for tests of the Python client, as deploy/setup.sh has fetched them; none where it has not:
@python_client//:wheels of the client, :batch of sfmamba-batch, :ray of Ray."""

_FOLDERS = {"wheels": "python_client", "batch": "python_batch", "ray": "python_ray"}

def _impl(ctx):
    build = ""
    for name, folder in _FOLDERS.items():
        path = ctx.path("{}/.deps/{}/wheels".format(ctx.path(Label("//:WORKSPACE")).dirname, folder))
        if path.exists:
            ctx.symlink(path, name)
        build += """
filegroup(
    name = "{0}",
    srcs = glob(["{0}/*.whl"]),
    visibility = ["//visibility:public"],
)
""".format(name)
    ctx.file("BUILD", build)

python_client_repository = repository_rule(
    implementation = _impl,
    local = True,
)
