// A z-buffer rasteriser for small textured pictures of one object, lit by a sky, a key
// light and its highlight. Built by render.py with the system's C compiler.

#include <math.h>
#include <stdint.h>

typedef struct {
  float diffuse[3], specular, shininess, alpha;
  int32_t width, height, masked;  // Texture; width 0 for none, masked if it has holes.
  int64_t texels;                 // Offset of its first RGBA texel in `texels`.
} Material;

typedef struct {
  float key[3], up[3];    // Unit vectors in view space; the viewer is at +z.
  float ambient, strength;
} Light;

// A corner: screen position in pixels, 1/depth, texture coordinates, normal in view space.
typedef struct { float x, y, w, u, v, n[3]; } Corner;

static float Clamp01(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

// Bilinear sample of a repeating texture; v points up.
static void Sample(const Material* m, const uint8_t* texels, float u, float v, float out[4]) {
  const uint8_t* t = texels + m->texels;
  float x = (u - floorf(u)) * m->width - 0.5f, y = (1 - v - floorf(1 - v)) * m->height - 0.5f;
  int x0 = (int)floorf(x), y0 = (int)floorf(y);
  float fx = x - x0, fy = y - y0;
  int xs[2] = {(x0 + m->width) % m->width, (x0 + 1) % m->width};
  int ys[2] = {(y0 + m->height) % m->height, (y0 + 1) % m->height};
  for (int c = 0; c < 4; ++c) {
    float top = t[4 * (ys[0] * m->width + xs[0]) + c] * (1 - fx) +
                t[4 * (ys[0] * m->width + xs[1]) + c] * fx;
    float bottom = t[4 * (ys[1] * m->width + xs[0]) + c] * (1 - fx) +
                   t[4 * (ys[1] * m->width + xs[1]) + c] * fx;
    out[c] = (top * (1 - fy) + bottom * fy) / 255;
  }
}

// Colour and alpha of a surface point; returns 0 where the texture has a hole.
static int Shade(const Material* m, const uint8_t* texels, const Light* light, float u, float v,
                 float n[3], float out[4]) {
  float texel[4] = {1, 1, 1, 1};
  if (m->width > 0) Sample(m, texels, u, v, texel);
  if (m->masked && texel[3] < 0.4f) return 0;
  float length = sqrtf(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]) + 1e-12f;
  float sign = (n[2] < 0 ? -1 : 1) / length;  // Both sides are lit.
  float key = 0, up = 0, half = 0, norm = 0;
  for (int i = 0; i < 3; ++i) {
    float view_half = light->key[i] + (i == 2);
    key += sign * n[i] * light->key[i];
    up += sign * n[i] * light->up[i];
    half += sign * n[i] * view_half;
    norm += view_half * view_half;
  }
  half = half > 0 ? half / sqrtf(norm) : 0;
  float lit = light->ambient * (0.8f + 0.2f * up) + light->strength * (key > 0 ? key : 0);
  float highlight = m->specular * powf(half, m->shininess) * light->strength;
  for (int c = 0; c < 3; ++c) out[c] = Clamp01(m->diffuse[c] * texel[c] * lit + highlight);
  out[3] = m->alpha * (m->masked ? 1 : texel[3]);
  return 1;
}

// Draws triangles whose material is opaque (pass 0) or see-through (pass 1, which reads
// the depth but leaves it). `image` [size,size,4] has premultiplied alpha; `depth`
// [size,size] holds 1/depth. Both start at zero.
void Rasterize(const Corner* corners, const int32_t* materials_of, int64_t triangles,
               const Material* materials, const uint8_t* texels, const Light* light, int size,
               int pass, float* image, float* depth) {
  for (int64_t k = 0; k < triangles; ++k) {
    const Material* m = &materials[materials_of[k]];
    if ((m->alpha < 0.99f) != pass) continue;
    const Corner *a = &corners[3 * k], *b = a + 1, *c = a + 2;
    float area = (b->x - a->x) * (c->y - a->y) - (c->x - a->x) * (b->y - a->y);
    if (fabsf(area) < 1e-9f) continue;
    int x0 = (int)fmaxf(0, floorf(fminf(a->x, fminf(b->x, c->x))));
    int y0 = (int)fmaxf(0, floorf(fminf(a->y, fminf(b->y, c->y))));
    int x1 = (int)fminf(size - 1, ceilf(fmaxf(a->x, fmaxf(b->x, c->x))));
    int y1 = (int)fminf(size - 1, ceilf(fmaxf(a->y, fmaxf(b->y, c->y))));
    for (int y = y0; y <= y1; ++y) {
      for (int x = x0; x <= x1; ++x) {
        float px = x + 0.5f, py = y + 0.5f;
        float wb = ((px - a->x) * (c->y - a->y) - (c->x - a->x) * (py - a->y)) / area;
        float wc = ((b->x - a->x) * (py - a->y) - (px - a->x) * (b->y - a->y)) / area;
        float wa = 1 - wb - wc;
        if (wa < 0 || wb < 0 || wc < 0) continue;
        float w = wa * a->w + wb * b->w + wc * c->w;
        float* z = &depth[y * size + x];
        if (w <= *z) continue;
        wa *= a->w / w, wb *= b->w / w, wc *= c->w / w;  // Perspective-correct weights.
        float n[3], colour[4];
        for (int i = 0; i < 3; ++i) n[i] = wa * a->n[i] + wb * b->n[i] + wc * c->n[i];
        if (!Shade(m, texels, light, wa * a->u + wb * b->u + wc * c->u,
                   wa * a->v + wb * b->v + wc * c->v, n, colour))
          continue;
        if (pass == 0) *z = w;
        float* out = &image[4 * (y * size + x)];
        for (int i = 0; i < 3; ++i) out[i] += colour[3] * (colour[i] - out[i]);
        out[3] += colour[3] * (1 - out[3]);
      }
    }
  }
}
