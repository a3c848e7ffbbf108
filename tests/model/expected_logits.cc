#include "tests/model/expected_logits.h"

namespace sfmamba::model {

std::ostream& operator<<(std::ostream& out, const ExpectedVariant& expected) {
  return out << expected.variant;
}

std::ostream& operator<<(std::ostream& out, const ExpectedLogits& expected) {
  return out << expected.name;
}

std::vector<ExpectedVariant> ExpectedVariants() {
  return {{"mamba_vision_t",
           {-1.091957f, -2.443343f, -9.448951f, 3.820600f, 5.282771f},
           {-1.025547f, -3.229963f, -9.945580f},
           -130.27502,
           22},
          {"sf_mamba_t",
           {-1.123564f, -2.412306f, -9.496569f, 3.884048f, 5.301793f},
           {-1.016190f, -3.219367f, -9.952835f},
           -129.69641,
           22},
          {"mamba_vision_s",
           {4.803917f, 1.002430f, -3.023065f, -3.204017f, 1.670843f},
           {4.548994f, 0.464598f, -2.785375f},
           -140.14289,
           359},
          {"sf_mamba_s",
           {4.767205f, 1.045348f, -3.123227f, -3.147847f, 1.664460f},
           {4.534333f, 0.494087f, -2.854516f},
           -141.44788,
           359},
          {"mamba_vision_b",
           {-0.829891f, 2.943469f, -0.177204f, 0.411612f, 0.234176f},
           {-0.582410f, 2.720943f, -0.063320f},
           -25.52281,
           44},
          {"sf_mamba_b",
           {-0.829927f, 2.974433f, -0.193036f, 0.406681f, 0.257286f},
           {-0.599316f, 2.733495f, -0.096434f},
           -26.11434,
           44}};
}

std::vector<ExpectedLogits> ExpectedOfSmallModel() {
  return {{"MambaVision",
           [](BackboneConfig& b) { b.tokens = Tokens::kNone; },
           {-1.346272f, 1.200347f,  1.614334f, -2.344629f, 0.195328f,
            0.212152f,  -0.187681f, 0.805755f, 0.124909f,  0.345907f,
            -1.116108f, 1.187059f,  1.656923f, -2.142867f, 0.466773f,
            0.118257f,  -0.005736f, 0.551676f, -0.146250f, 0.445125f}},
          {"SfMamba",
           [](BackboneConfig& b) {},
           {-1.210109f, 1.498856f,  2.115571f, -2.633697f, -0.017992f,
            0.329917f,  -0.240786f, 0.624643f, 0.401914f,  0.400423f,
            -1.014018f, 1.444564f,  2.069812f, -2.456361f, 0.313817f,
            0.331009f,  -0.066037f, 0.354831f, 0.183178f,  0.414456f}},
          {"BeforeAttention",
           [](BackboneConfig& b) { b.discard = Discard::kBeforeAttention; },
           {-1.188170f, 1.551860f,  2.123030f, -2.773193f, 0.090986f,
            0.236537f,  -0.155510f, 0.665186f, 0.321763f,  0.290802f,
            -0.992328f, 1.512063f,  2.061082f, -2.572036f, 0.447606f,
            0.252093f,  0.036693f,  0.369945f, 0.077622f,  0.303167f}},
          {"AfterAttention",
           [](BackboneConfig& b) { b.discard = Discard::kAfterAttention; },
           {-1.206383f, 1.484425f,  2.110265f, -2.597836f, -0.021116f,
            0.362648f,  -0.243484f, 0.629375f, 0.387816f,  0.357752f,
            -1.024880f, 1.424121f,  2.081953f, -2.435554f, 0.309715f,
            0.350607f,  -0.057716f, 0.347769f, 0.163845f,  0.374129f}},
          {"Learnable",
           [](BackboneConfig& b) { b.tokens = Tokens::kLearnable; },
           {-1.662113f, 1.485377f,  1.605001f, -2.558611f, 0.173301f,
            -0.066263f, -0.101249f, 1.334514f, 0.267236f,  0.142177f,
            -1.339981f, 1.334092f,  1.601627f, -2.371823f, 0.518184f,
            -0.135467f, 0.065948f,  1.113252f, 0.031097f,  0.188448f}},
          {"LearnableBeforeAttention",
           [](BackboneConfig& b) {
             b.tokens = Tokens::kLearnable;
             b.discard = Discard::kBeforeAttention;
           },
           {-1.513505f, 1.443883f,  1.503983f, -2.487972f, 0.108113f,
            0.091614f,  -0.150396f, 1.247932f, 0.294657f,  0.363777f,
            -1.292170f, 1.327031f,  1.505127f, -2.222508f, 0.491132f,
            0.009537f,  0.099629f,  0.976202f, -0.032145f, 0.416964f}},
          {"SubWindows",
           [](BackboneConfig& b) {
             b.attention_windows = {2, 0};
           },
           {-1.315383f, 1.276229f,  2.017872f, -2.416316f, -0.076572f,
            0.518855f,  -0.274236f, 0.505354f, 0.341898f,  0.090982f,
            -1.114989f, 1.198559f,  2.066166f, -2.266119f, 0.199773f,
            0.509356f,  -0.174192f, 0.234508f, 0.141792f,  0.121342f}},
          {"SubWindowsWithoutTokens",
           [](BackboneConfig& b) {
             b.tokens = Tokens::kNone;
             b.attention_windows = {2, 0};
           },
           {-1.359054f, 1.057783f,  1.493528f, -2.159681f, 0.207598f,
            0.435517f,  -0.194339f, 0.661057f, 0.165674f,  0.080786f,
            -1.129881f, 1.038782f,  1.620319f, -1.926295f, 0.428814f,
            0.325261f,  0.009775f,  0.417280f, -0.122665f, 0.223297f}},
          {"WithoutAttention",
           [](BackboneConfig& b) {
             b.tokens = Tokens::kNone;
             b.attention = false;
           },
           {-0.082853f, 1.521423f, 0.888640f, -3.261250f, -0.903510f,
            0.877793f,  0.256859f, 0.480953f, -0.495472f, -0.040681f,
            0.087058f,  1.693483f, 0.717795f, -3.188129f, -0.664548f,
            0.851082f,  0.474080f, 0.053588f, -0.376307f, 0.377176f}},
          {"WithoutAttentionWithTokens",
           [](BackboneConfig& b) { b.attention = false; },
           {0.025247f, 1.904032f, 1.300416f,  -3.494830f, -0.944779f,
            0.688101f, 0.029744f, 0.417370f,  -0.308727f, -0.129210f,
            0.128881f, 2.026161f, 1.240177f,  -3.501355f, -0.670254f,
            0.806237f, 0.267802f, -0.007781f, -0.166634f, 0.160296f}}};
}

}  // namespace sfmamba::model
