"""The kernels that a model on a GPU launches."""

CUDA_KERNELS = [
    "//kernels/linear:bias_activation_cuda",
    "//kernels/scan:selective_scan_cuda",
    "//kernels/sequence:depthwise_conv1d_cuda",
    "//kernels/sequence:layer_norm_cuda",
    "//kernels/sequence:token_mean_cuda",
    "//kernels/sequence:window_partition_cuda",
    "//kernels/vision:image_normalize_cuda",
    "//kernels/vision:nms_cuda",
    "//kernels/vision:pixel_convolution_cuda",
    "//kernels/vision:roi_align_cuda",
    "//kernels/vision:segmentation_argmax_cuda",
]
