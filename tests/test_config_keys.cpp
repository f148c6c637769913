// What configs may say, and its views: the objects, the schema, the reference page.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "handgrad/view/config_keys.h"
#include "paths.h"
#include "program.h"
#include "temporary_folder.h"

using namespace handgrad;
using nlohmann::json;

namespace {

const view::ConfigObject& object_at(const std::vector<view::ConfigObject>& objects,
                                    std::string_view pointer) {
  const auto found =
      std::find_if(objects.begin(), objects.end(), [&](const auto& o) { return o.pointer == pointer; });
  REQUIRE(found != objects.end());
  return *found;
}

}  // namespace

TEST_CASE("config keys: every key has a sentence, and its types have one too") {
  const auto objects = view::config_objects();
  std::size_t keys = 0;
  for (const auto& object : objects) {
    CHECK_MESSAGE(!object.doc.empty(), object.pointer);
    for (const auto& key : object.keys) CHECK_MESSAGE(!key.doc.empty(), key.pointer);
    for (const auto& type : object.types) {
      CHECK_MESSAGE(!type.doc.empty(), object.pointer, " ", type.name);
      for (const auto& key : type.keys) CHECK_MESSAGE(!key.doc.empty(), key.pointer);
      keys += type.keys.size();
    }
  }
  CHECK(keys > 40);
}

TEST_CASE("config keys: objects in the order of a page, keys with the type that has them") {
  const auto objects = view::config_objects();
  std::vector<std::string> pointers;
  for (const auto& object : objects) pointers.push_back(object.pointer);
  CHECK(pointers == std::vector<std::string>{"", "/model", "/model/norm", "/model/ff", "/data",
                                             "/data/tokenizer", "/train", "/optimizer", "/schedule",
                                             "/inspect"});
  const auto& norm = object_at(objects, "/model/norm");
  CHECK(norm.what == "norm");
  REQUIRE(norm.keys.size() == 1);
  CHECK(norm.keys[0].pointer == "/model/norm/type");
  REQUIRE(norm.types.size() == 3);
  CHECK(norm.types[0].name == "layer_norm");
  CHECK(norm.types[0].is_default);
  CHECK(!norm.types[1].is_default);
  CHECK(norm.types[0].keys.size() == 2);
  CHECK(norm.types[2].keys.empty());
  CHECK(view::value_text(norm.types[0].keys[0]) == "a number, at least 0");
  CHECK(view::value_text(norm.keys[0]) == "layer_norm, rms_norm or none");
  CHECK(io::dotted("/model/norm/eps") == "model.norm.eps");
  CHECK(view::last_name("/model/norm/eps") == "eps");
}

TEST_CASE("config schema: closed objects, ranges, defaults, one of steps and epochs") {
  const json schema = view::config_schema();
  CHECK(schema["additionalProperties"] == false);
  CHECK(schema["required"] == json{"model", "data", "train"});
  const json& train = schema["properties"]["train"];
  CHECK(train["oneOf"] == json{{{"required", {"steps"}}}, {{"required", {"epochs"}}}});
  CHECK(train["properties"]["steps"]["minimum"] == 1);
  CHECK(train["properties"]["grad_clip"]["default"] == 0);
  const json& betas = schema["properties"]["optimizer"]["properties"]["betas"];
  CHECK(betas["minItems"] == 2);
  CHECK(betas["items"]["exclusiveMaximum"] == 1);
  const json& norm = schema["properties"]["model"]["allOf"][0]["then"]["properties"]["norm"];
  CHECK(norm["properties"]["type"]["enum"] == json{"layer_norm", "rms_norm", "none"});
  CHECK(norm["allOf"][2]["then"]["propertyNames"]["enum"] == json{"type"});
}

TEST_CASE("the committed schema and reference page are what the program prints") {
  const TemporaryFolder folder;
  const std::string docs = HANDGRAD_SOURCE_DIR "/docs/";
  CHECK(handgrad_in(folder.path(), "config schema").out == read_file(docs + "config.schema.json"));
  CHECK(handgrad_in(folder.path(), "config reference").out == read_file(docs + "config.md"));
}

TEST_CASE("config show tells each value and where it came from") {
  const TemporaryFolder folder;
  const json keys = handgrad_in(folder.path(), "config show " + config_path("toy.json") +
                                                   " --set train.steps=500 --set model.norm.eps=0.1 --json")
                        .json();
  const auto shown = [&](const std::string& name) {
    for (const json& key : keys)
      if (key["key"] == name) return key["value"].dump() + " " + key["from"].get<std::string>();
    return std::string("(no such key)");
  };
  CHECK(shown("train.steps") == "500 command line");
  CHECK(shown("model.norm.eps") == "0.1 command line");
  CHECK(shown("model.emb_dim") == "32 file");
  CHECK(shown("model.tie_weights") == "false default");
  CHECK(shown("train.epochs") == "null not given");
  CHECK(shown("optimizer.betas") == "[0.9,0.95] file");

  const std::string text = handgrad_in(folder.path(), "config show " + config_path("toy_sgd.json")).out;
  CHECK(text.find("\ntrain.batch_size") != std::string::npos);
  CHECK(text.find("\ntrain.steps") < text.find("\noptimizer.momentum"));
}

TEST_CASE("layers lists what a config may name") {
  const TemporaryFolder folder;
  CHECK(handgrad_in(folder.path(), "layers rms_norm").out ==
        "norm, chosen by model.norm.type\n"
        "\n"
        "  rms_norm                      each row divided by the root of its mean square, then scale\n"
        "    eps       1e-05  a number, at least 0: added to the mean square, under the root\n"
        "    composed  false  true or false: from primitive operations, each of them visible in the graph\n");
  const json all = handgrad_in(folder.path(), "layers --json").json();
  std::vector<std::string> what;
  for (const json& object : all) what.push_back(object["what"]);
  CHECK(what == std::vector<std::string>{"model", "norm", "feed-forward", "data source", "tokenizer",
                                         "optimizer", "schedule"});
  const Outcome wrong = handgrad_in(folder.path(), "layers rms_nrom");
  CHECK(wrong.status == 2);
  CHECK(wrong.err.starts_with("layers: nothing is called \"rms_nrom\"; did you mean \"rms_norm\"?"));
}
