// explain for a real row of a real model, for any module, and for the operations beside layer_norm.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "expect.h"
#include "handgrad/core/ops.h"
#include "handgrad/train/recording.h"
#include "program.h"
#include "temporary_folder.h"

using namespace handgrad;
using nlohmann::json;

namespace {

using Row = std::vector<double>;

Outcome run(const TemporaryFolder& folder, const std::string& arguments) {
  Outcome outcome = handgrad_in(folder.path(), arguments);
  CHECK_MESSAGE(outcome.status == 0, outcome.err);
  return outcome;
}

/// A toy of six steps in the folder `run`, with a checkpoint after each fourth.
void train_six(const TemporaryFolder& folder, const std::string& more = "") {
  run(folder, "train " + config_path("toy.json") +
                  " --quiet --out run --set train.steps=6 --set train.checkpoint_every=4 " + more);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void check_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    CHECK_MESSAGE((line.size() <= 100 || has(line, " explain ")), line);  // a command is as long as it is
}

void near(const json& numbers, const Array& expected) {
  expect::near(expected, numbers.get<Row>(), 1e-12, 1e-12);
}

}  // namespace

TEST_CASE("explain RUN: one row of a LayerNorm, and all of them as training added them up") {
  const TemporaryFolder folder;
  train_six(folder);
  const train::Recording recording(folder.path() / "run" / train::kRecordingFile);
  const auto recorded = [&](const std::string& name, std::int64_t step) {
    std::size_t i = 0;
    while (recording.parameters()[i].name != name) ++i;
    return recording.read(i, step);
  };
  for (const std::string norm : {"trf_blocks.0.norm1", "final_norm"}) {
    // At step 5 there is no checkpoint: the run is repeated from the fourth.
    const json page = run(folder, "explain run --layer " + norm + " --step 5 --json").json();
    CHECK(page["origin"] == "re-run from step 4 to 5");
    CHECK(page["dtype"] == "float32");
    CHECK(page["row"] == json{0, 15});
    CHECK(page["all_rows"]["rows"] == 256);
    // What all rows give is the gradient that made the sixth step.
    const auto floats = [](const json& numbers) {
      std::vector<float> list;
      for (const json& number : numbers) list.push_back(number.get<float>());
      return list;
    };
    const auto as_floats = [](const Row& row) { return std::vector<float>(row.begin(), row.end()); };
    CHECK(floats(page["all_rows"]["dscale"]) == as_floats(recorded(norm + ".scale", 6).gradient));
    CHECK(floats(page["all_rows"]["dshift"]) == as_floats(recorded(norm + ".shift", 6).gradient));
    CHECK(floats(page["scale"]) == as_floats(recorded(norm + ".scale", 5).value));
    // The lines are those of the form that trains, to rounding.
    for (std::size_t i = 0; i < 32; ++i)
      CHECK(page["model_output"][i].get<double>() ==
            doctest::Approx(page["rows"][0]["output"][i].get<double>()).epsilon(1e-5));
  }
}

TEST_CASE("explain RUN: one row of an RMSNorm, all of them, and a scale that is frozen") {
  const TemporaryFolder folder;
  train_six(folder, R"(--set 'model.norm={"type": "rms_norm"}' --set 'train.freeze=["norm2"]')");
  const json page = run(folder, "explain run --layer norm1 --json").json();
  CHECK(page["all_rows"]["rows"] == 256);
  REQUIRE(page["all_rows"]["dscale"].size() == 32);
  CHECK(page["sgd"]["scale"] != page["rows"][0]["forward"]["scale"]);
  for (std::size_t i = 0; i < 32; ++i)
    CHECK(page["model_output"][i].get<double>() ==
          doctest::Approx(page["rows"][0]["forward"]["output"][i].get<double>()).epsilon(1e-5));
  CHECK(has(run(folder, "explain run --layer norm1").out, "ALL 256 ROWS of this pass"));
  const json frozen = run(folder, "explain run --layer norm2 --json").json();
  CHECK_FALSE(frozen["all_rows"].contains("dscale"));
  CHECK(frozen["sgd"]["scale"] == frozen["rows"][0]["forward"]["scale"]);
  CHECK(has(run(folder, "explain run --layer norm2").out, "frozen: no step moves it"));
}

TEST_CASE("explain RUN: no step moves a scale that is frozen") {
  const TemporaryFolder folder;
  train_six(folder, R"(--set 'train.freeze=["norm2.scale", "final_norm"]')");
  const json all = run(folder, "explain run --layer final_norm --json").json();
  CHECK(all["sgd"]["scale"] == all["scale"]);
  CHECK(all["sgd"]["shift"] == all["shift"]);
  const json page = run(folder, "explain run --layer norm2 --json").json();
  CHECK(page["sgd"]["scale"] == page["scale"]);
  CHECK(page["sgd"]["shift"] != page["shift"]);
  CHECK(has(run(folder, "explain run --layer norm2").out, "frozen: no step moves it"));
}

TEST_CASE("explain RUN: every row of a pass gives its part of d scale") {
  const TemporaryFolder folder;
  train_six(folder, "--set train.batch_size=2 --set model.context_length=4");
  Row sum(32, 0.0);
  json all;
  for (int b = 0; b < 2; ++b)
    for (int t = 0; t < 4; ++t) {
      const json page = run(folder, "explain run --layer norm2 --dtype float64 --row " + std::to_string(b) +
                                        "," + std::to_string(t) + " --json")
                            .json();
      for (std::size_t i = 0; i < 32; ++i) sum[i] += page["backward"]["dscale"][i].get<double>();
      all = page["all_rows"]["dscale"];
    }
  for (std::size_t i = 0; i < 32; ++i) CHECK(std::abs(all[i].get<double>() - sum[i]) < 1e-15);
}

TEST_CASE("explain RUN --at: the row of a text's last letter") {
  const TemporaryFolder folder;
  train_six(folder);
  const std::string page = run(folder, "explain run --layer final_norm --at 'The blue boat br' --then o").out;
  check_narrow(page);
  CHECK(has(page,
            "final_norm at step 6, the row of the last token, \"r\"; 1 of 16 rows, 32 features, float32\n"
            "weights from checkpoint step-000006\n"));
  CHECK(has(page,
            "FORWARD                                                  [0]         [1]         [2] ...        "
            "[31]\n"));
  CHECK(has(page, "     The loss is -log p(\"o\" comes next), as --then says.\n"));
  CHECK(has(page, "ONE SGD STEP, lr = 0.1, with this row alone"));
  // Only the last token makes the loss here, so one row makes the whole gradient of the last norm.
  const json numbers =
      run(folder, "explain run --layer final_norm --dtype float64 --at 'The b' --json").json();
  near(numbers["backward"]["dscale"],
       Tensor::of(numbers["all_rows"]["dscale"].get<Row>(), {32}, DType::float64).array());
  // A config alone has its first weights: ones and zeros.
  const json first =
      run(folder, "explain " + config_path("toy.json") + " --layer norm1 --at The --json").json();
  CHECK(first["origin"] == "first weights");
  CHECK(first["scale"] == json(Row(32, 1.0)));
}

TEST_CASE("explain RUN: a repeated run with other numbers than the recorded ones is an error") {
  const TemporaryFolder folder;
  train_six(folder);
  run(folder, "train " + config_path("toy.json") +
                  " --quiet --out other --set train.steps=6 --weights run/checkpoints/step-000006");
  const Outcome outcome = handgrad_in(folder.path(), "explain other --layer final_norm --step 5");
  CHECK(outcome.status == 1);
  CHECK(has(outcome.err,
            "explain other: repeating the run does not give the trf_blocks.0.norm1.scale that it recorded at "
            "step 5\n"));
}

TEST_CASE("explain RUN: the plain form of any module, its arrays whole in JSON") {
  const TemporaryFolder folder;
  train_six(folder);
  const std::string page = run(folder, "explain run --layer ff --at 'The b'").out;
  check_narrow(page);
  CHECK(has(page, "trf_blocks.0.ff (feed_forward) at step 6, the row of the last token, \"b\"; float32\n"));
  CHECK(has(page, "  2  gelu                 of 1             [1, 5, 128] "));
  CHECK(has(page, "                   saved  x [1, 5, 32], weight [128, 32]\n"));
  for (const char* layer : {"tok_emb", "att", "out_head", "trf_blocks.0", "out_proj", "layers.1"}) {
    const json numbers =
        run(folder, std::string("explain run --layer ") + layer + " --at 'The b' --json").json();
    REQUIRE(!numbers["operations"].empty());
    const json& last = numbers["operations"].back();
    CHECK(last["result"]["values"].size() >= 5 * 32);
    CHECK(last["result"]["shape"][1] == 5);
    CHECK(last["upstream"]["shape"] == last["result"]["shape"]);
  }
}

TEST_CASE("explain of other operations agrees with the library in float64") {
  const TemporaryFolder folder;
  const auto page = [&](const std::string& arguments) {
    return run(folder, "explain " + arguments + " --json").json();
  };
  const DType wide = DType::float64;
  const Array up = Tensor::of({0.5, -1, 2}, wide).array();
  const std::string x = " 0.3 -1.7 2.25 ", upstream = " --upstream 0.5,-1,2";
  {
    const Tensor in = expect::leaf({0.3, -1.7, 2.25}, wide), scale = expect::leaf({1, 2, -1}, wide);
    const Tensor out = rms_norm(in, scale, 0.01);
    out.backward(up);
    const json p = page("rms_norm" + x + "--scale 1,2,-1 --eps 0.01" + upstream);
    near(p["rows"][0]["forward"]["output"], out.array());
    near(p["rows"][0]["backward"]["dx"], in.grad());
    near(p["rows"][0]["backward"]["dscale"], scale.grad());
    near(p["rows"][0]["backward"]["dx_by_formula"], in.grad());
  }
  {
    const Tensor in = expect::leaf({0.3, -1.7, 2.25}, wide), out = softmax(in);
    out.backward(up);
    const json p = page("softmax" + x + upstream);
    near(p["rows"][0]["forward"]["output"], out.array());
    near(p["rows"][0]["backward"]["dx"], in.grad());
    near(p["rows"][0]["backward"]["dx_by_formula"], in.grad());
  }
  {
    const Tensor in = expect::leaf({0.3, -1.7, 2.25}, wide), out = gelu(in);
    out.backward(up);
    const json p = page("gelu" + x + upstream);
    near(p["rows"][0]["forward"]["output"], out.array());
    near(p["rows"][0]["backward"]["dx"], in.grad());
  }
  {
    const Tensor in = expect::leaf(Tensor::of({{0.3, -1.7, 2.25}, {1, 2, 3}}, wide).array());
    const Tensor loss = cross_entropy(in, Ids::of({2, 0}));
    loss.backward();
    const json p = page("cross_entropy" + x + "/ 1 2 3 --target 2,0");
    CHECK(p["forward"]["loss"].get<double>() == doctest::Approx(loss.item()));
    Row both = p["rows"][0]["backward"]["dlogits"].get<Row>();
    for (const double g : p["rows"][1]["backward"]["dlogits"].get<Row>()) both.push_back(g);
    expect::near(in.grad(), both, 1e-12, 1e-12);
    expect::near(slice(Tensor::constant(in.grad()), 0, 1, 2).array(),
                 p["rows"][1]["backward"]["dlogits_by_formula"].get<Row>(), 1e-12, 1e-12);
  }
  {
    const Tensor in = expect::leaf(Tensor::of({{0.3, -1.7, 2.25}}, wide).array()),
                 weight = expect::leaf(Tensor::of({{1, 0.5, 2}, {-1, 3, 0}}, wide).array()),
                 bias = expect::leaf({0.1, -0.2}, wide);
    const Tensor out = linear(in, weight, bias);
    out.backward(Tensor::of({{1, -2}}, wide).array());
    const json p = page("linear" + x + "--weight 1,0.5,2/-1,3,0 --bias 0.1,-0.2 --upstream 1,-2");
    near(p["rows"][0]["forward"]["output"], out.array());
    near(p["rows"][0]["backward"]["dx"], in.grad());
    near(p["backward"]["dweight_1"], slice(Tensor::constant(weight.grad()), 0, 1, 2).array());
    near(p["backward"]["dbias"], bias.grad());
  }
  {
    const Tensor qkv = expect::leaf(
        Tensor::of({{1, 0, 0.5, 2, 3, -1}, {0, 1, 1, 1, -2, 4}}, wide).array().reshape({1, 2, 6}));
    const Tensor out = causal_attention(qkv, 1);
    out.backward(Tensor::of({{0, 0}, {1, 0}}, wide).array().reshape({1, 2, 2}));
    const json p = page("attention 1 0 / 0 1 --keys 0.5,2/1,1 --values 3,-1/-2,4");
    near(p["forward"]["output_1"], slice(out, 1, 1, 2).array());
    near(p["backward"]["d_query_1"], Tensor::of({qkv.grad().value(6), qkv.grad().value(7)}, wide).array());
    near(p["backward"]["d_key_0"], Tensor::of({qkv.grad().value(2), qkv.grad().value(3)}, wide).array());
    near(p["backward"]["d_value_0"], Tensor::of({qkv.grad().value(4), qkv.grad().value(5)}, wide).array());
  }
  {
    const json p = page("adam 0.5 -0.25 --lr 0.1");
    CHECK(p["rows"][0]["step"]["m_corrected"].get<double>() == doctest::Approx(0.5));
    CHECK(p["rows"][0]["step"]["value"].get<double>() == doctest::Approx(0.9));  // the first step is lr
    const double m = (0.9 * 0.05 - 0.1 * 0.25) / (1 - 0.81),
                 v = (0.999 * 0.00025 + 0.001 * 0.0625) / (1 - 0.998001);
    CHECK(p["rows"][1]["step"]["value"].get<double>() ==
          doctest::Approx(0.9 - 0.1 * m / (std::sqrt(v) + 1e-8)));
  }
}

TEST_CASE("explain: pages of every operation are at most 100 columns wide, with gaps and in Python too") {
  const TemporaryFolder folder;
  for (const std::string operation :
       {"layer_norm 0.123456789 -2.3456789 3e5 1e-7", "rms_norm 1 7 3 4 5 6 7 8 / 2 2 2 2 1 1 1 1",
        "softmax -- 1 2 3 / -inf 1 0", "gelu -1 0.3333333333 2", "cross_entropy 2 1 0.1 / 1 2 3 --target 2,0",
        "linear 1 2 / 3 4 --weight 1,0/0,1/0.3333333333333,2", "attention 1 0 / 0 1 / 0.333333333 1",
        "adam 0.1 -0.2 0.3", "softmax 1 2 3 4 5 6 7 8 9 10 11",
        "adam 0.1 --weight-decay 0.5 --betas 0.5,0.25"}) {
    CAPTURE(operation);
    const bool after_dashes = has(operation, " -- ");
    const auto with = [&](const std::string& option) {
      return after_dashes ? option + " " + operation : operation + " " + option;
    };
    for (const char* option : {"", "--blank"}) check_narrow(run(folder, "explain " + with(option)).out);
    CHECK(has(run(folder, "explain " + with("--blank")).out, "____"));
    CHECK(has(run(folder, "explain " + with("--python")).out, "import torch\n"));
  }
}

TEST_CASE("explain --json: what was asked with is there too") {
  const TemporaryFolder folder;
  const auto given = [&](const std::string& arguments) {
    return run(folder, "explain " + arguments + " --json").json()["given"];
  };
  CHECK(given("adam 1 --lr 0.5 --betas 0.5,0.25 --start 3") ==
        json{{"start", 3}, {"lr", 0.5}, {"betas", {0.5, 0.25}}, {"eps", 1e-8}, {"weight_decay", 0}});
  CHECK(given("linear 2 3 --weight 1,0/0,1")["weight"] == json{{1, 0}, {0, 1}});
  CHECK(given("cross_entropy 2 1 / 0 1 --target 0,1")["target"] == json{0, 1});
  CHECK(given("rms_norm 1 7 --eps 0.5")["eps"] == 0.5);
}

TEST_CASE("explain: what a number must be, and what a masked row is, is said") {
  const TemporaryFolder folder;
  for (const char* betas : {"0.9,1", "-0.1,0.9", "nan,0.9"}) {
    const Outcome outcome = handgrad_in(folder.path(), std::string("explain adam 1 --betas ") + betas);
    CHECK(outcome.status > 0);
    CHECK_MESSAGE(outcome.err.starts_with("explain adam: --betas must be at least 0 and below 1, got "),
                  outcome.err);
  }
  const Outcome part = handgrad_in(folder.path(), "explain adam 0.1 --part forward");
  CHECK(part.status == 2);
  CHECK(part.err == "explain adam: there is no part forward here\n  try: --part step\n");
  // What is shown as given is what float32 holds of it.
  const json narrow = run(folder, "explain layer_norm 16777217 1 --dtype float32 --json").json();
  CHECK(narrow["rows"][0]["x"] == json{16777216, 1});
  CHECK(has(run(folder, "explain layer_norm 16777217 1 --dtype float32").out, "(16777216 + 1)"));
  const json masked = run(folder, "explain cross_entropy -inf -inf --json").json();
  CHECK(masked["rows"][0]["backward"]["dlogits_by_formula"] == masked["rows"][0]["backward"]["dlogits"]);
  CHECK(has(run(folder, "explain softmax -inf -inf").out, "handgrad's softmax returns zeros"));
  CHECK_FALSE(has(run(folder, "explain softmax 1 -inf").out, "handgrad's softmax returns zeros"));
}

TEST_CASE("explain cross_entropy: the loss of more rows than are spelled out is their sum divided") {
  const TemporaryFolder folder;
  std::string rows = "1 0";
  for (int i = 1; i < 9; ++i) rows += " / 1 0";
  CHECK(run(folder, "explain cross_entropy " + rows).out.find("sum 2.8193552 / 9  =  0.31326169") !=
        std::string::npos);
}

TEST_CASE("explain RUN: a run that was killed, or whose text was edited, is the run that it was") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += i % 3 == 0 ? "abc " : "cab ";
  std::ofstream(folder.path() / "text.txt") << text;
  const std::string train =
      "train " + config_path("toy.json") +
      " --quiet --set data.path=text.txt --set train.steps=4 --set train.checkpoint_every=2 --out ";
  REQUIRE(run(folder, train + "whole").status == 0);
  REQUIRE(run(folder, train + "killed").status == 0);
  const std::string ask = " --layer final_norm --row 0,3 --step 4 --part forward";
  const std::string page = run(folder, "explain whole" + ask).out;
  std::filesystem::remove_all(folder.path() / "killed" / "checkpoints" / "step-000004");
  const std::string again = run(folder, "explain killed" + ask).out;
  CHECK(again.find("re-run from step 2 to 4") != std::string::npos);
  const auto numbers = [](const std::string& page_text) {
    return page_text.substr(page_text.find("FORWARD"), page_text.find("\nnext") - page_text.find("FORWARD"));
  };
  CHECK(numbers(again) == numbers(page));
  std::filesystem::remove_all(folder.path() / "killed" / "checkpoints");
  CHECK(run(folder, "explain killed" + ask).out.find("re-run from step 0 to 4") != std::string::npos);

  const std::string at = " --layer final_norm --at ab --part forward";
  const std::string before = run(folder, "explain whole" + at).out;
  for (char& c : text)
    if (c == 'a') c = 'b';  // the text has fewer letters now, the run as many as before
  std::ofstream(folder.path() / "text.txt") << text;
  CHECK(run(folder, "explain whole" + at).out == before);
  const std::string other = run(folder, "explain whole --set optimizer.lr=1" + at).out;
  CHECK(other.find("not the run's own: with optimizer.lr=1\n") != std::string::npos);
}

TEST_CASE("explain RUN: what the rows of a pass leave out of the step's gradient is said") {
  const TemporaryFolder folder;
  const std::string page = run(folder, "explain " + config_path("toy.json") +
                                           " --layer final_norm --row 0,0 --set model.drop_rate=0.2 --set "
                                           "train.accumulate=2 --part backward")
                               .out;
  CHECK(page.find("the first of 2 micro-batches") != std::string::npos);
  CHECK(page.find("Dropout is left out here") != std::string::npos);
  CHECK(run(folder, "explain " + config_path("toy.json") + " --layer drop_emb --at The")
            .out.find("none: the output is the input") != std::string::npos);
}
