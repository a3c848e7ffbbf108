"""Reads Sweet Home 3D furniture libraries (.sh3f): catalogue, OBJ meshes and materials.

A library is a zip with PluginFurnitureCatalog.properties and OBJ/MTL/texture files. In a 3D model,
y points up and the front faces +z.
"""

import dataclasses
import io
import pathlib
import posixpath
import re
import zipfile

import numpy as np
from PIL import Image

LIBRARIES = '/usr/share/sweethome3d/furniture'  # Debian package sweethome3d-furniture.
LICENCES = {'Scopia': 'CC-BY 3.0', 'BlendSwap-CC-BY': 'CC-BY 3.0', 'BlendSwap-CC-0': 'CC0',
            'KatorLegaz': 'CC-BY 3.0 US', 'Reallusion': 'CC-BY 3.0 US'}
MAX_TEXTURE = 256  # Longest side in texels. More is useless, because rendered pictures are small.


@dataclasses.dataclass
class Entry:
    library: str
    id: str
    name: str
    model: str            # Path of the OBJ file in the library.
    size: tuple           # Width, height, depth in cm.
    creator: str
    rotation: np.ndarray  # [3,3], applied before the model is scaled to `size`.


@dataclasses.dataclass
class Material:
    diffuse: tuple = (0.8, 0.8, 0.8)
    specular: float = 0.0
    shininess: float = 32.0
    alpha: float = 1.0
    texture: np.ndarray = None  # RGBA uint8 [height, width, 4].


@dataclasses.dataclass
class Mesh:
    """The corners of T triangles, three rows for each triangle.

    The mesh is scaled to the entry's size. Its centre is at the origin.
    """
    positions: np.ndarray   # [3T,3], cm
    normals: np.ndarray     # [3T,3]
    uvs: np.ndarray         # [3T,2]
    material_of: np.ndarray  # [T], indices in `materials`
    materials: list


def read_catalogue(folder=LIBRARIES):
    """Returns {id: Entry} of all entries of all libraries in `folder`."""
    entries = {}
    for path in sorted(pathlib.Path(folder).glob('*.sh3f')):
        with zipfile.ZipFile(path) as archive:
            text = archive.read('PluginFurnitureCatalog.properties').decode('latin-1')
        records = {}
        for key, number, value in re.findall(r'^(\w+)#(\d+)=(.*)$', text, re.M):
            records.setdefault(number, {})[key] = value.strip()
        for r in records.values():
            if 'model' not in r:
                continue
            rotation = np.array(r.get('modelRotation', '1 0 0 0 1 0 0 0 1').split(), float)
            size = tuple(float(r[side]) for side in ('width', 'height', 'depth'))
            entries[r['id']] = Entry(path.stem, r['id'], r['name'], r['model'].lstrip('/'), size,
                                     r['creator'], rotation.reshape(3, 3))
    return entries


def read_texture(archive, path):
    try:
        image = Image.open(io.BytesIO(archive.read(path))).convert('RGBA')
    except (KeyError, OSError):
        return None
    image.thumbnail((MAX_TEXTURE, MAX_TEXTURE), Image.BILINEAR)
    return np.asarray(image)


def read_materials(archive, path):
    """Returns {name: Material} of an MTL file. It is empty if there is no such file."""
    materials, current = {}, None
    try:
        text = archive.read(path).decode('latin-1')
    except KeyError:
        return materials
    for line in text.splitlines():
        key, _, value = line.strip().partition(' ')
        value = value.strip()
        if key == 'newmtl':
            current = materials[value] = Material()
        elif current is None or not value:
            continue
        elif key == 'Kd':
            current.diffuse = tuple(float(x) for x in value.split()[:3])
        elif key == 'Ks':
            current.specular = float(np.mean([float(x) for x in value.split()[:3]]))
        elif key == 'Ns':
            current.shininess = min(max(float(value.split()[0]), 4), 128)
        elif key == 'd':
            current.alpha = float(value.split()[-1])
        elif key == 'map_Kd':  # The name may contain blanks.
            current.texture = read_texture(archive, posixpath.join(posixpath.dirname(path), value))
    for material in materials.values():
        if material.texture is not None and sum(material.diffuse) < 0.1:
            material.diffuse = (1.0, 1.0, 1.0)
    return materials


def parse_corner(corner, counts):
    """Converts 'v/vt/vn' to three 0-based indices. An absent index becomes -1.

    A positive index of OBJ counts from 1. A negative index counts back from the last element that
    was read. `counts` has the numbers of elements read so far.
    """
    parts = (corner.split('/') + ['', ''])[:3]
    return [-1 if not p else int(p) - 1 if int(p) > 0 else n + int(p)
            for p, n in zip(parts, counts)]


def read_mesh(entry, folder=LIBRARIES):
    with zipfile.ZipFile(pathlib.Path(folder) / f'{entry.library}.sh3f') as archive:
        lines = archive.read(entry.model).decode('latin-1').splitlines()
        names, materials, current = {}, [Material()], 0
        lists = {'v': [], 'vt': [], 'vn': []}
        corners, material_of, library = [], [], {}
        for line in lines:
            key, _, value = line.strip().partition(' ')
            if key in lists:
                lists[key].append([float(x) for x in value.split()[:3]])
            elif key == 'f':
                counts = [len(lists[k]) for k in ('v', 'vt', 'vn')]
                face = [parse_corner(c, counts) for c in value.split()]
                for i in range(1, len(face) - 1):
                    corners += [face[0], face[i], face[i + 1]]
                    material_of.append(current)
            elif key == 'mtllib':
                library |= read_materials(
                    archive, posixpath.join(posixpath.dirname(entry.model), value.strip()))
            elif key == 'usemtl':
                name = value.strip()
                if name not in names:
                    names[name] = len(materials)
                    materials.append(library.get(name, Material()))
                current = names[name]
    corners = np.array(corners, np.int64)
    positions = np.array(lists['v'])[corners[:, 0]] @ entry.rotation.T
    low, high = positions.min(0), positions.max(0)
    scale = np.array(entry.size) / np.maximum(high - low, 1e-6)
    scale = np.where(high - low < 1e-6, 1, scale)
    positions = (positions - (low + high) / 2) * scale
    flat = np.cross(positions[1::3] - positions[::3], positions[2::3] - positions[::3])
    flat /= np.linalg.norm(flat, axis=1, keepdims=True) + 1e-12
    normals = np.repeat(flat, 3, axis=0)
    if lists['vn']:
        given = corners[:, 2] >= 0
        n = np.array(lists['vn'])[corners[given, 2]] @ entry.rotation.T / scale
        normals[given] = n / (np.linalg.norm(n, axis=1, keepdims=True) + 1e-12)
    uvs = np.zeros((len(corners), 2))
    if lists['vt']:
        given = corners[:, 1] >= 0
        uvs[given] = np.array([uv[:2] for uv in lists['vt']])[corners[given, 1]]
    return Mesh(positions, normals, uvs, np.array(material_of, np.int32), materials)
