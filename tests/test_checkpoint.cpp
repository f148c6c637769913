// Checkpoints: every bit is restored, and a damaged checkpoint or one of another model is rejected as a whole.
#include <doctest/doctest.h>

#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include <nlohmann/json.hpp>

#include "handgrad/io/files.h"
#include "handgrad/io/name_report.h"
#include "handgrad/io/safetensors.h"
#include "handgrad/models/weights.h"
#include "handgrad/train/checkpoint.h"
#include "handgrad/train/open_run.h"
#include "temporary_folder.h"
#include "toy.h"

using namespace handgrad;
using namespace handgrad::train;
using namespace handgrad::io;
using namespace handgrad::optim;
using toy::Training;
namespace fs = std::filesystem;

namespace {

std::string read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Every file below a folder with its bytes.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) all[fs::relative(entry.path(), folder).string()] = read_bytes(entry.path());
  }
  return all;
}

Training::Options with_dropout() {
  return {.drop_rate = 0.2, .micro_batches = 2, .trainer = {.seed = 7, .grad_clip = 0.5}};
}

/// An error's text with the folder's path left out.
template <class E, class Body>
std::string message_without(const fs::path& folder, const Body& body) {
  std::string text = expect::message<E>(body);
  const std::string path = folder.string() + "/";
  for (std::size_t at = text.find(path); at != std::string::npos; at = text.find(path))
    text.erase(at, path.size());
  return text;
}

}  // namespace

TEST_CASE("checkpoint: H85 ten steps are five, a checkpoint and five more, to the bit") {
  const TemporaryFolder folder;
  Training whole(with_dropout());
  std::vector<double> losses;
  for (int step = 0; step < 10; ++step) losses.push_back(whole.trainer.step().loss);

  Training first(with_dropout());
  first.trainer.run(5);
  first.trainer.keep_best(1.25);
  const nlohmann::ordered_json config = {{"train", {{"steps", 10}}}};
  const fs::path path = save_checkpoint(folder.path(), first.trainer, {.config = &config});
  CHECK(path == folder.path() / "step-000005");

  Training second(with_dropout());
  for (Parameter* parameter : second.model.parameters()) parameter->mutable_array().fill(0.5);
  const CheckpointState state = load_checkpoint(path, second.trainer);
  CHECK(state.step == 5);
  CHECK(state.seed == 7);
  CHECK(state.optimizer == "adamw");
  CHECK(state.best_loss == 1.25);
  CHECK(state.config == R"({"train":{"steps":10}})");
  CHECK(second.trainer.best_loss() == 1.25);
  CHECK(second.trainer.step_count() == 5);
  for (std::size_t step = 5; step < 10; ++step) {
    const StepReport report = second.trainer.step();
    CHECK(report.step == static_cast<std::int64_t>(step) + 1);
    CHECK(report.loss == losses[step]);
  }
  CHECK(toy::same_bits(second.weights(), whole.weights()));

  // The states after ten steps are equal too: their checkpoints have the same bytes.
  second.trainer.restore(10, {});
  save_checkpoint(folder.path() / "a", whole.trainer);
  save_checkpoint(folder.path() / "b", second.trainer);
  CHECK(contents(folder.path() / "a") == contents(folder.path() / "b"));
}

TEST_CASE("checkpoint: float64, and the state before any step") {
  const TemporaryFolder folder;
  Training::Options options{.dtype = DType::float64};
  Training first(options), second(options);
  for (Parameter* parameter : second.model.parameters()) parameter->mutable_array().fill(0.5);
  const fs::path path = save_checkpoint(folder.path(), first.trainer);
  CHECK(path.filename() == "step-000000");
  load_checkpoint(path, second.trainer);
  CHECK(toy::same_bits(first.weights(), second.weights()));
  CHECK_FALSE(second.trainer.best_loss().has_value());
  CHECK(second.trainer.step().loss == first.trainer.step().loss);
}

TEST_CASE("checkpoint: H76 tied weights are stored once and stay tied") {
  const TemporaryFolder folder;
  models::GptConfig config = toy::config();
  config.tie_weights = true;
  models::GptModel model(config, 1), other(config, 2);
  const auto& arrays = models::weights_of(model.named_parameters());
  io::write_safetensors(folder.path() / "tied.safetensors", arrays);
  const io::SafetensorsReader reader(folder.path() / "tied.safetensors");
  CHECK(reader.find("tok_emb.weight") != nullptr);
  CHECK(reader.find("out_head.weight") == nullptr);
  load_weights(folder.path() / "tied.safetensors", other);
  CHECK(expect::same_bits(other.tok_emb.weight.array(), model.tok_emb.weight.array()));
  other.tok_emb.weight.mutable_array().fill(3);
  CHECK(other.out_head.weight.array().value(0) == 3);

  // A file that names both: equal numbers are fine, others are not.
  std::vector<io::NamedArray> both = arrays;
  both.push_back({"out_head.weight", model.tok_emb.weight.array().copy()});
  io::write_safetensors(folder.path() / "both.safetensors", both);
  load_weights(folder.path() / "both.safetensors", other);
  CHECK(expect::same_bits(other.tok_emb.weight.array(), model.tok_emb.weight.array()));
  both.back().array.fill(1);
  io::write_safetensors(folder.path() / "both.safetensors", both);
  CHECK(message_without<Error>(folder.path(),
                               [&] { load_weights(folder.path() / "both.safetensors", other); }) ==
        "\"both.safetensors\": tok_emb.weight and out_head.weight are one tensor in the model, but differ in "
        "the file");
}

TEST_CASE("checkpoint: H87 another architecture is rejected with a list of all differences") {
  const TemporaryFolder folder;
  Training training({});
  training.trainer.step();
  const fs::path path = save_checkpoint(folder.path(), training.trainer);
  std::vector<io::NamedArray> arrays = io::SafetensorsReader(path / "model.safetensors").read_all();
  for (io::NamedArray& named : arrays) {
    if (named.name == "trf_blocks.0.norm1.scale") named.name = "trf_blocks.0.norm1.weight";
    if (named.name == "trf_blocks.0.norm1.shift") named.name = "trf_blocks.0.norm1.bias";
    if (named.name == "tok_emb.weight") named.array = Array::zeros({18, 16});
    if (named.name == "final_norm.scale") named.array = Array::zeros({16}, DType::float64);
  }
  io::write_safetensors(path / "model.safetensors", arrays);
  const std::vector<Array> before = training.weights();
  CHECK(message_without<NameMismatchError>(folder.path(), [&] { load_checkpoint(path, training.trainer); }) ==
        "step-000001/model.safetensors: 2 missing, 2 unexpected, 1 wrong shape, 1 wrong type\n"
        "  missing     trf_blocks.0.norm1.scale, trf_blocks.0.norm1.shift\n"
        "  unexpected  trf_blocks.0.norm1.weight, trf_blocks.0.norm1.bias\n"
        "  wrong shape tok_emb.weight: file [18, 16], model [17, 16]\n"
        "  wrong type  final_norm.scale: file F64, model F32");
  CHECK(toy::same_bits(training.weights(), before));
}

TEST_CASE("checkpoint: weights alone may have another float type") {
  const TemporaryFolder folder;
  models::GptModel single(toy::config(), 1), doubled(toy::config(), 2);
  doubled.to(DType::float64);
  io::write_safetensors(folder.path() / "x.safetensors", models::weights_of(single.named_parameters()));
  load_weights(folder.path() / "x.safetensors", doubled);
  CHECK(doubled.out_head.weight.dtype() == DType::float64);
  CHECK(doubled.out_head.weight.values() == single.out_head.weight.values());
}

TEST_CASE("checkpoint: a damaged one is rejected without changing anything") {
  const TemporaryFolder folder;
  Training training({});
  training.trainer.run(2);
  const fs::path good = save_checkpoint(folder.path() / "checkpoints", training.trainer);
  training.trainer.step();
  const std::vector<Array> before = training.weights();
  const fs::path bad = folder.path() / "bad";
  const auto error_of = [&](const auto& damage) {
    fs::remove_all(bad);
    fs::copy(good, bad);
    damage();
    std::string text = "accepted";
    try {
      load_checkpoint(bad, training.trainer);
    } catch (const std::exception& error) {
      text = error.what();
    }
    CHECK(toy::same_bits(training.weights(), before));
    CHECK(training.trainer.step_count() == 3);
    CHECK(training.optimizer.updates(0) == 3);
    return text;
  };
  const auto replace_in_state = [&](const std::string& from, const std::string& to) {
    std::string text = read_bytes(bad / "state.json");
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
    std::ofstream(bad / "state.json") << text;
  };
  const auto contains = [](const std::string& text, const char* part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  for (const char* file : {"state.json", "model.safetensors", "optimizer.safetensors"}) {
    CAPTURE(file);
    contains(error_of([&] { fs::remove(bad / file); }), "No such file or directory");
    contains(error_of([&] { fs::resize_file(bad / file, fs::file_size(bad / file) / 2); }), file);
    contains(error_of([&] { fs::resize_file(bad / file, 0); }), file);
  }
  contains(error_of([&] { replace_in_state("\"step\": 2", "\"step\": \"2\""); }), "is damaged: ");
  contains(error_of([&] { replace_in_state("\"step\": 2", "\"step\": -2"); }),
           "step must be at least 0, got -2");
  contains(error_of([&] { replace_in_state("\"best_loss\"", "\"best\""); }),
           "is damaged: key 'best_loss' not found");
  contains(error_of([&] { replace_in_state("\"format_version\": 1", "\"format_version\": 9"); }),
           "has format version 9, this program knows versions up to 1");
  contains(error_of([&] { replace_in_state("adamw", "sgd"); }),
           "holds the state of optimizer sgd, this run has adamw");
  contains(error_of([&] {
             std::vector<io::NamedArray> state =
                 io::SafetensorsReader(bad / "optimizer.safetensors").read_all();
             state.pop_back();
             io::write_safetensors(bad / "optimizer.safetensors", state);
           }),
           "optimizer.safetensors: 1 missing\n  missing     out_head.weight.exp_avg_sq");
  load_checkpoint(good, training.trainer);
  CHECK(training.trainer.step_count() == 2);
  CHECK(training.optimizer.updates(0) == 2);
}

TEST_CASE("checkpoint: H83 leftovers of an interrupted call are passed over, and removed by the next one") {
  const TemporaryFolder folder;
  const fs::path checkpoints = folder.path() / "checkpoints";
  CHECK_FALSE(find_latest(folder.path()).has_value());
  Training training({});
  training.trainer.run(2);
  const fs::path second = save_checkpoint(checkpoints, training.trainer);
  fs::create_directories(checkpoints / "step-000009.unfinished");
  std::ofstream(checkpoints / "step-000009.unfinished" / "model.safetensors") << "half";
  fs::create_directories(checkpoints / "step-000007");  // without state.json: no checkpoint
  fs::create_directories(checkpoints / "step-9");
  CHECK(find_latest(folder.path()) == second);

  training.trainer.step();
  const fs::path third = save_checkpoint(checkpoints, training.trainer);
  CHECK(find_latest(folder.path()) == third);
  CHECK_FALSE(fs::exists(checkpoints / "step-000009.unfinished"));

  // The same step once more replaces what is there.
  const auto before = contents(third);
  std::ofstream(third / "stray") << "x";
  save_checkpoint(checkpoints, training.trainer);
  CHECK(contents(third) == before);
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    CHECK(entry.path().extension() != ".unfinished");
  }
}

TEST_CASE("checkpoint: numbers of steps beyond six digits keep their order") {
  CHECK(checkpoint_name(100) == "step-000100");
  CHECK(checkpoint_name(1234567) == "step-1234567");
  const TemporaryFolder folder;
  Training training({});
  training.trainer.restore(999999, {});
  save_checkpoint(folder.path() / "checkpoints", training.trainer);
  training.trainer.restore(1000000, {});
  const fs::path last = save_checkpoint(folder.path() / "checkpoints", training.trainer);
  CHECK(find_latest(folder.path()) == last);
}

TEST_CASE("checkpoint: H84 a disk without room is an error with path and reason, and the old files stay") {
  const TemporaryFolder folder;
  Training training({});
  training.trainer.step();
  save_checkpoint(folder.path(), training.trainer);
  const auto before = contents(folder.path());
  training.trainer.step();

  // A limit on the size of files stands for the full disk.
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, limit.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string text =
      message_without<Error>(folder.path(), [&] { save_checkpoint(folder.path(), training.trainer); });
  std::ofstream(folder.path() / "page") << "the old one";
  const std::string page = message_without<Error>(
      folder.path(), [&] { io::replace_file(folder.path() / "page", std::string(8192, 'x')); });
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, old_handler);
  CHECK(page == "\"page\": cannot be written: File too large");
  CHECK(contents(folder.path()).at("page") == "the old one");
  CHECK_FALSE(std::filesystem::exists(folder.path() / "page.unfinished"));
  std::filesystem::remove(folder.path() / "page");
  CHECK(text == "\"step-000002.unfinished/model.safetensors\": cannot be written: File too large");
  CHECK(contents(folder.path()) == before);

  const fs::path file = folder.path() / "file";
  std::ofstream(file) << "x";
  CHECK(message_without<Error>(folder.path(), [&] { save_checkpoint(file, training.trainer); }) ==
        "\"file/step-000002\": cannot be written: Not a directory");
}
