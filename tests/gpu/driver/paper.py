"""The figures in the paper on SF-Mamba (arXiv 2603.16423) with which ours are compared.

The paper measured on an A100 in mixed precision, so compare ratios and not speeds.
"""

# Images per second at 224 x 224 pixels, by model and batch size.
BY_BATCH = {
    'mamba_vision_t': {1: 119, 32: 3770, 128: 6662, 256: 7025, 512: 7134, 1024: 7271},
    'sf_mamba_t': {1: 126, 32: 3962, 128: 7600, 256: 7801, 512: 8009, 1024: 8190},
    'mamba_vision_s': {128: 4933},
    'sf_mamba_s': {128: 5639},
    'mamba_vision_b': {1: 96, 32: 2798, 128: 2974, 256: 3128, 512: 3176, 1024: 3206},
    'sf_mamba_b': {1: 98, 32: 3168, 128: 3534, 256: 3592, 512: 3641, 1024: 3685},
}

# MambaVision-T at batch 128 with SF-Mamba's kernels. It differs from SF-Mamba only in the auxiliary
# tokens. BY_BATCH has MambaVision with mamba-ssm's kernels.
SAME_KERNELS = {'mamba_vision_t': 7645}

SIDES = (224, 448, 896, 1792, 3584)

# Images per second for each of SIDES. The keys are (model, batch, whether attention is limited to
# windows of 32 ("club")).
BY_SIDE = {
    ('mamba_vision_t', 32, False): (3770, 1578, 324, 50, 5),
    ('sf_mamba_t', 32, False): (3962, 1777, 397, 61, 6),
    ('sf_mamba_t', 32, True): (None, None, 427, 105, 27),
    ('mamba_vision_t', 1, False): (119, 121, 120, 48, 5),
    ('sf_mamba_t', 1, False): (126, 126, 125, 54, 6),
    ('sf_mamba_t', 1, True): (None, None, 120, 89, 26),
}

# Images per second of MambaVision-T at batch 128 by B1. 128 means without folding. 0 means that a
# table chooses B1.
BY_FOLD = {128: 6989, 1: 7601, 4: 7641, 0: 7685}
# The images per second before any optimisation, and with unfolding around each convolution.
UNOPTIMISED, UNFOLDED_CONVOLUTIONS = 6662, 7279

FOLDS = (1, 2, 4, 8, 16, 32, 64, 128)

# The paper's times of the scan alone at batch 128. Each entry is (channels, length, times) and has
# a time for each B1 of FOLDS. The last time is without folding. The paper's unit is not our unit,
# which is microseconds, so compare only ratios of times.
SCANS = {
    'paper T stage 3': (320, 196, (.4223, .4440, .4602, .4541, .4532, .4648, .4954, .4825)),
    'paper T stage 4': (640, 49, (.2380, .2349, .2334, .2383, .2539, .2431, .2587, .4147)),
    'paper B stage 3': (512, 196, (.7038, .7380, .7195, .7092, .7129, .7240, .7818, .7636)),
    'paper B stage 4': (1024, 49, (.3803, .3651, .3618, .3695, .3983, .3828, .4029, .6550)),
}
