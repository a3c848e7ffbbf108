"""The kernels that a model on a GPU launches, without "_cuda"."""

CUDA_KERNELS = [
    "depthwise_conv1d",
    "gelu",
    "image_normalize",
    "layer_norm",
    "nms",
    "roi_align",
    "segmentation_argmax",
    "selective_scan",
    "token_mean",
    "window",
]
