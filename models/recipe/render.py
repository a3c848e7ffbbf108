"""Renders cut-outs of furniture models: RGBA pictures of one object from many sides.

    python render.py --out CUTOUTS            # Views of every exemplar in exemplars.tsv.
    python render.py --out SHEETS --sheets    # One contact sheet per class, for a check by eye.
"""

import argparse
import csv
import ctypes
import pathlib
import subprocess
import tempfile
import zlib

import numpy as np
from PIL import Image, ImageDraw

import furniture

HERE = pathlib.Path(__file__).parent
SIZE = 256        # Side of a cut-out in pixels. The object fills it up to a margin of 2 pixels.
SUPERSAMPLE = 2
VIEWS = 48
FRONT_ONLY = {'cabinet', 'screen', 'socket', 'appliance', 'bath fixture'}
FROM_ABOVE = {'tool'}

MATERIAL = np.dtype([('diffuse', 'f4', 3), ('specular', 'f4'), ('shininess', 'f4'),
                     ('alpha', 'f4'), ('width', 'i4'), ('height', 'i4'), ('masked', 'i4'),
                     ('texels', 'i8')], align=True)
LIGHT = np.dtype([('key', 'f4', 3), ('up', 'f4', 3), ('ambient', 'f4'), ('strength', 'f4')])


def build_rasterizer():
    """Compiles rasterize.c for this machine and returns its Rasterize function."""
    library = pathlib.Path(tempfile.mkdtemp()) / 'rasterize.so'
    subprocess.run(['cc', '-O3', '-march=native', '-ffast-math', '-shared', '-fPIC', '-o', library,
                    HERE / 'rasterize.c', '-lm'], check=True)
    function = ctypes.CDLL(str(library)).Rasterize
    pointer = ctypes.c_void_p
    function.argtypes = [pointer, pointer, ctypes.c_int64, pointer, pointer, pointer,
                         ctypes.c_int, ctypes.c_int, pointer, pointer]
    function.restype = None
    return function


def rotation(azimuth, elevation, roll):
    """Returns the matrix [3,3] from world to view. Angles are in radians.

    The viewer looks along -z. At azimuth 0 the viewer sees the front.
    """
    ca, sa, ce, se, cr, sr = (f(x) for x in (azimuth, elevation, roll) for f in (np.cos, np.sin))
    around_y = np.array([[ca, 0, -sa], [0, 1, 0], [sa, 0, ca]])
    around_x = np.array([[1, 0, 0], [0, ce, -se], [0, se, ce]])
    around_z = np.array([[cr, -sr, 0], [sr, cr, 0], [0, 0, 1]])
    return around_z @ around_x @ around_y


def pack_materials(mesh, rng, jitter):
    """Returns the mesh's materials as C structs, and all textures concatenated in one array. If
    `jitter`, varies the colours."""
    packed, texels, offset = np.zeros(len(mesh.materials), MATERIAL), [], 0
    for row, m in zip(packed, mesh.materials):
        tint = rng.uniform(0.8, 1.2, 3) if jitter else np.ones(3)
        row['diffuse'] = np.clip(np.array(m.diffuse) * tint, 0.03, 1)
        row['specular'], row['shininess'] = min(m.specular, 0.6) * 0.6, m.shininess
        row['alpha'] = np.clip(m.alpha, 0.15, 1)
        if m.texture is not None:
            row['height'], row['width'] = m.texture.shape[:2]
            row['masked'] = m.texture[..., 3].min() < 100
            row['texels'] = offset
            texels.append(m.texture.ravel())
            offset += m.texture.size
    return packed, np.concatenate(texels) if texels else np.zeros(4, np.uint8)


def project(mesh, view, fov, size):
    """Returns the corners [3T,8] for the rasteriser. The object fills a picture of size x size."""
    positions = mesh.positions @ view.T
    radius = np.linalg.norm(positions, axis=1).max()
    depth = radius / np.sin(fov / 2) * 1.05 - positions[:, 2]
    xy = positions[:, :2] / depth[:, None]
    low, high = xy.min(0), xy.max(0)
    scale = (size - 4 * SUPERSAMPLE) / (high - low).max()
    xy = (xy - (low + high) / 2) * scale * [1, -1] + size / 2
    columns = [xy, radius / depth[:, None], mesh.uvs, mesh.normals @ view.T]
    return np.concatenate(columns, axis=1).astype(np.float32)


def random_view(rng, label):
    """Returns azimuth, elevation and roll in degrees, as people usually look at such a thing."""
    if label in FROM_ABOVE:
        return rng.uniform(-180, 180), rng.uniform(25, 90), rng.uniform(-180, 180)
    azimuth = rng.uniform(-65, 65) if label in FRONT_ONLY else rng.uniform(-180, 180)
    return azimuth, rng.uniform(0, 32), rng.normal(0, 3)


def random_light(rng, view):
    light = np.zeros(1, LIGHT)
    key = np.array([rng.uniform(-1, 1), rng.uniform(0, 1), rng.uniform(0.5, 1.2)])
    light['key'] = key / np.linalg.norm(key)
    light['up'] = view @ [0, 1, 0]
    light['ambient'] = rng.uniform(0.45, 0.75)
    light['strength'] = rng.uniform(0.4, 0.7)
    return light


def draw(rasterize, mesh, materials, view, fov, light, size):
    """Renders the object so that it fills the picture. Returns uint8 [size,size,4], with colours
    premultiplied by alpha."""
    full = size * SUPERSAMPLE
    corners = project(mesh, view, fov, full)
    packed, texels = materials
    image = np.zeros((full, full, 4), np.float32)
    depth = np.zeros((full, full), np.float32)
    for see_through in (0, 1):
        rasterize(corners.ctypes.data, mesh.material_of.ctypes.data, len(mesh.material_of),
                  packed.ctypes.data, texels.ctypes.data, light.ctypes.data, full, see_through,
                  image.ctypes.data, depth.ctypes.data)
    image = image.reshape(size, SUPERSAMPLE, size, SUPERSAMPLE, 4).mean((1, 3))
    return (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8)


def render(rasterize, mesh, rng, label, size=SIZE):
    """Renders a random view. Returns the result of draw()."""
    view = rotation(*np.radians(random_view(rng, label)))
    fov = np.radians(rng.uniform(20, 57))
    materials = pack_materials(mesh, rng, rng.random() < 0.4)
    return draw(rasterize, mesh, materials, view, fov, random_light(rng, view), size)


def read_exemplars():
    with open(HERE / 'exemplars.tsv', encoding='utf-8', newline='') as file:
        return list(csv.DictReader(file, delimiter='\t'))


def exemplar_seed(exemplar):
    return zlib.crc32(exemplar['id'].encode())


def write_views(rasterize, catalogue, exemplars, out, views):
    for number, exemplar in enumerate(exemplars):
        path = out / f'{exemplar_seed(exemplar):08x}.npy'
        if path.exists():
            continue
        mesh = furniture.read_mesh(catalogue[exemplar['id']])
        rng = np.random.default_rng(exemplar_seed(exemplar))
        pictures = [render(rasterize, mesh, rng, exemplar['class']) for _ in range(views)]
        np.save(path, np.stack(pictures))
        print(f'{number + 1}/{len(exemplars)} {exemplar["class"]}: {exemplar["name"]}', flush=True)


def write_sheet(rasterize, catalogue, exemplars, path, columns=10, cell=112):
    """Draws two views of each exemplar over grey, with its id and its name."""
    rows = -(-len(exemplars) // columns)
    sheet = Image.new('RGB', (columns * cell, rows * (2 * cell + 24)), (255, 255, 255))
    draw = ImageDraw.Draw(sheet)
    for k, exemplar in enumerate(exemplars):
        mesh = furniture.read_mesh(catalogue[exemplar['id']])
        rng = np.random.default_rng(exemplar_seed(exemplar))
        x, y = k % columns * cell, k // columns * (2 * cell + 24)
        for view in range(2):
            picture = render(rasterize, mesh, rng, exemplar['class'], cell).astype(float)
            over = picture[..., :3] + 190 * (1 - picture[..., 3:] / 255)
            sheet.paste(Image.fromarray(over.astype(np.uint8)), (x, y + view * cell))
        draw.text((x + 2, y + 2 * cell), exemplar['id'][-18:], fill=(0, 0, 0))
        draw.text((x + 2, y + 2 * cell + 11), exemplar['name'][:18], fill=(160, 0, 0))
    sheet.save(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--views', type=int, default=VIEWS)
    parser.add_argument('--sheets', action='store_true')
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rasterize, catalogue = build_rasterizer(), furniture.read_catalogue()
    exemplars = read_exemplars()
    if args.sheets:
        for label in sorted({e['class'] for e in exemplars}):
            members = [e for e in exemplars if e['class'] == label]
            write_sheet(rasterize, catalogue, members, args.out / f'{label.replace(" ", "_")}.png')
    else:
        write_views(rasterize, catalogue, exemplars, args.out, args.views)


if __name__ == '__main__':
    main()
