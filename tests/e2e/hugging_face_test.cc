// Runs a real server on folders in Hugging Face's layout. Their weights have
// the shapes of the published models. No flag describes the folders' contents.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "model/config.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/model/expected_logits.h"
#include "tests/model/implementations.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/weights.h"

namespace sfmamba {
namespace {

namespace fs = std::filesystem;

std::string Label(int class_id) { return absl::StrCat("class of ", class_id); }

// Returns a config.json like the published ones, with labels and only the
// needed fields.
std::string ConfigJson(const model::ModelConfig& config) {
  const model::BackboneConfig& backbone = config.backbone;
  std::vector<std::string> labels;
  for (int i = 0; i < config.num_classes; ++i) {
    labels.push_back(absl::StrCat("\"", i, "\": \"", Label(i), "\""));
  }
  return absl::StrFormat(
      R"({"architectures": ["MambaVisionModelForImageClassification"],
          "model_type": "mambavision", "torch_dtype": "float32",
          "dim": %d, "in_dim": %d, "depths": [%s], "num_heads": [%s],
          "window_size": [8, 8, %d, %d], "mlp_ratio": 4,
          "drop_path_rate": 0.2, "id2label": {%s}})",
      backbone.dim, backbone.in_dim, absl::StrJoin(backbone.depths, ", "),
      absl::StrJoin(backbone.num_heads, ", "), backbone.windows[0],
      backbone.windows[1], absl::StrJoin(labels, ", "));
}

// Returns random tensors under their published names. Includes the counters
// that PyTorch stores for each BatchNorm.
std::map<std::string, at::Tensor> PublishedTensors(
    const model::ModelConfig& config) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [key, tensor] : DeterministicWeights(config)) {
    tensors["model." + key] = tensor;
  }
  tensors["model.norm.num_batches_tracked"] = at::zeros({}, at::kLong);
  return tensors;
}

void WriteTensors(const fs::path& path,
                  const std::map<std::string, at::Tensor>& tensors) {
  const absl::Status written = WriteWeights(path.string(), tensors);
  ASSERT_TRUE(written.ok()) << written;
}

void WriteShards(const fs::path& folder,
                 const std::map<std::string, at::Tensor>& tensors) {
  const std::string names[] = {"model-00001-of-00002.safetensors",
                               "model-00002-of-00002.safetensors"};
  std::map<std::string, at::Tensor> shards[2];
  std::vector<std::string> entries;
  for (const auto& [key, tensor] : tensors) {
    const int i = shards[0].size() < tensors.size() / 2 ? 0 : 1;
    shards[i][key] = tensor;
    entries.push_back(absl::StrCat("\"", key, "\": \"", names[i], "\""));
  }
  for (int i : {0, 1}) WriteTensors(folder / names[i], shards[i]);
  std::ofstream(folder / "model.safetensors.index.json")
      << "{\"metadata\": {}, \"weight_map\": {" << absl::StrJoin(entries, ",")
      << "}}";
}

void WriteFolder(const fs::path& folder, const model::ModelConfig& config,
                 bool shards = false) {
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << ConfigJson(config);
  const auto tensors = PublishedTensors(config);
  if (shards) {
    WriteShards(folder, tensors);
  } else {
    WriteTensors(folder / "model.safetensors", tensors);
  }
}

// Writes a folder like the ones that timm exports.
void WriteTimmFolder(const fs::path& folder, const model::ModelConfig& config) {
  std::vector<std::string> labels;
  for (int i = 0; i < config.num_classes; ++i) {
    labels.push_back(absl::StrCat("\"", Label(i), "\""));
  }
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << absl::StrFormat(
      R"({"architecture": "%s", "num_classes": %d, "global_pool": "avg",
          "model_args": {"in_chans": 3, "global_pool": "avg"},
          "label_names": [%s],
          "pretrained_cfg": {"tag": "in1k", "input_size": [3, 224, 224],
                             "interpolation": "bicubic", "crop_pct": 0.95,
                             "crop_mode": "center",
                             "mean": [0.485, 0.456, 0.406],
                             "std": [0.229, 0.224, 0.225]}})",
      config.variant, config.num_classes, absl::StrJoin(labels, ", "));
  WriteTensors(folder / "model.safetensors", DeterministicWeights(config));
}

// Returns the name that a VMamba tensor has in the Transformers version of
// VMamba.
std::string TransformersName(const std::string& key) {
  if (absl::StartsWith(key, "classifier.head.")) {
    return absl::StrReplaceAll(key, {{"classifier.", ""}});
  }
  return "vmamba." +
         absl::StrReplaceAll(
             key, {{"classifier.norm", "norm"},
                   {"patch_embed.0", "patch_embeddings.projection.0"},
                   {"patch_embed.2", "patch_embeddings.projection.1"},
                   {"patch_embed.5", "patch_embeddings.projection.3"},
                   {"patch_embed.7", "patch_embeddings.projection.4"},
                   {"downsample.1", "downsample.down"},
                   {"downsample.3", "downsample.norm"},
                   {"x_proj_weight", "x_proj.weight"},
                   {"dt_projs_weight", "dt_projs.weight"}});
}

// Writes a folder like the ones of the Transformers version of VMamba.
void WriteVMambaFolder(const fs::path& folder,
                       const model::ModelConfig& config) {
  std::vector<std::string> labels;
  for (int i = 0; i < config.num_classes; ++i) {
    labels.push_back(absl::StrCat("\"", i, "\": \"", Label(i), "\""));
  }
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << absl::StrFormat(
      R"({"architectures": ["VMambaForImageClassification"],
          "model_type": "vmamba", "depths": [%s], "dims": %d, "embed_dim": %d,
          "patch_size": 4, "num_classes": %d, "id2label": {%s}})",
      absl::StrJoin(config.backbone.depths, ", "), config.backbone.dim,
      config.backbone.dim, config.num_classes, absl::StrJoin(labels, ", "));
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [key, tensor] : DeterministicWeights(config)) {
    tensors[TransformersName(key)] =
        tensor.dim() == 3 ? tensor.flatten(0, 1) : tensor;
  }
  WriteTensors(folder / "model.safetensors", tensors);
}

fs::path NewFolder() {
  std::string folder = testing::TempDir() + "/folder.XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

// Returns a small network, which loads fast and is no published variant.
model::ModelConfig Small() {
  model::ModelConfig config;
  config.backbone.dim = 16;
  config.backbone.in_dim = 8;
  config.backbone.depths = {1, 1, 2, 2};
  config.backbone.num_heads = {1, 1, 2, 4};
  config.backbone.windows = {14, 7};
  config.backbone.tokens = model::Tokens::kNone;
  config.num_classes = 5;
  return config;
}

class HuggingFaceTest : public testing::Test {
 protected:
  void Start(const std::vector<std::string>& flags) {
    server_ = std::make_unique<ServerProcess>(flags);
    ASSERT_TRUE(server_->WaitUntilServing()) << server_->output();
    stub_ = v1::VisionService::NewStub(grpc::CreateChannel(
        server_->address(), grpc::InsecureChannelCredentials()));
  }

  v1::Model Describe(const std::string& id) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_name("models/" + id);
    v1::Model model;
    const grpc::Status status = stub_->GetModel(&context, request, &model);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return model;
  }

  // The answer for one normalized image. The class number is the index of both
  // vectors.
  struct Answer {
    std::vector<float> logits;
    std::vector<std::string> labels;
  };
  Answer Classify(const std::string& id, const at::Tensor& image, int classes) {
    v1::ClassifyRequest request;
    request.set_model(id);
    v1::Tensor* tensor = request.add_images()->mutable_tensor();
    tensor->set_data_type(v1::Tensor::FP32);
    for (const int64_t size : image.sizes()) tensor->add_shape(size);
    tensor->set_data(image.const_data_ptr(), image.nbytes());
    request.mutable_params()->set_top_k(classes);
    request.mutable_params()->set_score_type(v1::ClassifyParams::LOGIT);
    grpc::ClientContext context;
    v1::ClassifyResponse response;
    const grpc::Status status = stub_->Classify(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    Answer answer = {std::vector<float>(classes),
                     std::vector<std::string>(classes)};
    if (!status.ok()) return answer;
    EXPECT_EQ(response.results(0).categories_size(), classes);
    for (const v1::Category& category : response.results(0).categories()) {
      answer.logits[category.class_id()] = category.score();
      answer.labels[category.class_id()] = category.label();
    }
    return answer;
  }

  // Expects that the served logits differ from the reference network's by at
  // most 1e-5 of the logits' range. The labels must equal the ones in
  // config.json.
  void ExpectServed(const std::string& id, const model::ModelConfig& config) {
    const at::Tensor images = DeterministicImages({2, 3, 224, 224});
    const Answer answer = Classify(id, images[0], config.num_classes);
    const std::vector<float> expected =
        model::LogitsOf(config, images.slice(0, 0, 1), model::Reference());
    const auto [least, most] =
        std::minmax_element(expected.begin(), expected.end());
    EXPECT_LE(model::LargestDifference(answer.logits, expected),
              1e-5 * (*most - *least));
    for (const model::ExpectedVariant& variant : model::ExpectedVariants()) {
      if (variant.variant != config.variant) continue;
      for (size_t i = 0; i < variant.first.size(); ++i) {
        EXPECT_NEAR(answer.logits[i], variant.first[i], 1e-4) << i;
      }
    }
    for (int i = 0; i < config.num_classes; ++i) {
      EXPECT_EQ(answer.labels[i], Label(i));
    }
    const v1::Model served = Describe(id);
    EXPECT_EQ(served.state(), v1::Model::READY);
    EXPECT_EQ(served.variant(), config.variant);
    EXPECT_EQ(served.config_source(), "config.json");
  }

  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<v1::VisionService::Stub> stub_;
};

class PublishedShapesTest : public HuggingFaceTest,
                            public testing::WithParamInterface<const char*> {};

TEST_P(PublishedShapesTest, AreServedAsTheyAre) {
  const fs::path repository = NewFolder();
  const model::ModelConfig config = *model::VariantConfig(GetParam());
  const bool shards = config.variant == "mamba_vision_l";
  WriteFolder(repository / "net/1", config, shards);
  Start({"--model_repository=" + repository.string()});
  ExpectServed("net", config);
  server_.reset();
  fs::remove_all(repository);  // The folder may take a gigabyte of disk space.
}

INSTANTIATE_TEST_SUITE_P(All, PublishedShapesTest,
                         testing::Values("mamba_vision_t", "mamba_vision_t2",
                                         "mamba_vision_s", "mamba_vision_b",
                                         "mamba_vision_l"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

TEST_F(HuggingFaceTest, TimmsFoldersAreServedAsTheyAre) {
  const fs::path repository = NewFolder();
  const std::string names[] = {"test_mambaout", "efficientvim_m1",
                               "efficientvim_m1_dist"};
  for (const std::string& name : names) {
    WriteTimmFolder(repository / name / "1", *model::VariantConfig(name));
  }
  Start({"--model_repository=" + repository.string()});
  for (const std::string& name : names) {
    ExpectServed(name, *model::VariantConfig(name));
  }
  fs::remove_all(repository);
}

TEST_F(HuggingFaceTest, VMambasFoldersAreServedAsTheyAre) {
  const fs::path repository = NewFolder();
  model::ModelConfig config = *model::VariantConfig("vmamba_t_s2l5");
  config.backbone.dim = 16;
  config.backbone.depths = {1, 1, 2, 1};
  config.num_classes = 7;
  WriteVMambaFolder(repository / "net/1", config);
  Start({"--model_repository=" + repository.string()});
  ExpectServed("net", config);
  fs::remove_all(repository);
}

// KServe's modelcar provides the model folder as a link to another container's
// files. Hugging Face's cache contains links to files ("blobs").
TEST_F(HuggingFaceTest, AFolderByItsNameMayBeALinkToLinks) {
  const fs::path folder = NewFolder();
  WriteFolder(folder / "blobs", Small());
  fs::create_directories(folder / "snapshots/ab12");
  for (const char* name : {"config.json", "model.safetensors"}) {
    fs::create_symlink(fs::path("../../blobs") / name,
                       folder / "snapshots/ab12" / name);
  }
  fs::create_symlink(folder / "snapshots/ab12", folder / "mnt");
  model::ModelConfig config = Small();
  Start({absl::StrCat("--model=car=", (folder / "mnt").string()),
         absl::StrCat("--model=other=", (folder / "blobs").string())});
  config.variant = "custom";
  ExpectServed("car", config);
  ExpectServed("other", config);
}

// The folder has the layout in which kubelet mounts a ConfigMap.
TEST_F(HuggingFaceTest, AReadOnlyFolderOfLinksToData) {
  const fs::path repository = NewFolder();
  const fs::path version = repository / "map/1";
  WriteFolder(version / "..2026_11", Small());
  fs::create_symlink("..2026_11", version / "..data");
  for (const char* name : {"config.json", "model.safetensors"}) {
    fs::create_symlink(fs::path("..data") / name, version / name);
  }
  for (const auto& entry : fs::recursive_directory_iterator(repository)) {
    if (entry.is_symlink()) continue;
    fs::permissions(entry.path(),
                    fs::perms::owner_write | fs::perms::group_write |
                        fs::perms::others_write,
                    fs::perm_options::remove);
  }
  Start({"--model_repository=" + repository.string(),
         "--model=flag=" + version.string()});
  model::ModelConfig config = Small();
  config.variant = "custom";
  ExpectServed("map", config);
  ExpectServed("flag", config);
}

// A folder that cannot be served must report why and must not affect other
// models.
TEST_F(HuggingFaceTest, WhatCannotBeServedSaysWhy) {
  const fs::path repository = NewFolder();
  WriteFolder(repository / "good/1", Small());
  WriteFolder(repository / "family/1", Small());
  std::ofstream(repository / "family/1/config.json")
      << R"({"model_type": "swin"})";
  WriteFolder(repository / "pointer/1", Small());
  std::ofstream(repository / "pointer/1/model.safetensors")
      << "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
  Start({"--model_repository=" + repository.string(),
         "--exit_on_load_error=false"});
  EXPECT_EQ(Describe("good").state(), v1::Model::READY);
  const v1::Model family = Describe("family");
  EXPECT_EQ(family.state(), v1::Model::UNAVAILABLE);
  EXPECT_EQ(family.state_reason(),
            "config.json: model_type: got \"swin\", expected \"mambavision\"");
  EXPECT_THAT(Describe("pointer").state_reason(),
              testing::HasSubstr("Git LFS"));
}

}  // namespace
}  // namespace sfmamba
