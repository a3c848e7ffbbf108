"""The kernels that a model on a GPU launches, without "_cuda"."""

CUDA_KERNELS = [
    "bias_activation",
    "depthwise_conv1d",
    "image_normalize",
    "layer_norm",
    "nms",
    "pixel_convolution",
    "roi_align",
    "segmentation_argmax",
    "selective_scan",
    "token_mean",
    "window",
]
