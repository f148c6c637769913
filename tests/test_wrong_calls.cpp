// Wrong configs and calls: each ends with one message, which says the rule, what came, where, and what to do; the whole
// text is compared. Nothing is printed to stdout, and nothing is written.
#include <doctest/doctest.h>

#include <vector>

#include "paths.h"
#include "program.h"
#include "temporary_folder.h"

namespace {

struct WrongCall {
  std::string arguments;  // TOY stands for the path of configs/toy.json
  int status;
  std::string message;  // SOURCE and FOLDER stand for the two folders
};

const std::vector<WrongCall>& wrong_calls() {
  static const std::vector<WrongCall> calls = {
      // clang-format off
      {"train TOY --set train.batch_sise=8", 2,
       "--set train.batch_sise=8: /train/batch_sise: unknown key; did you mean \"batch_size\"? (known: accumulate, allow_unused, batch_size, checkpoint_every, dtype, epochs, eval_batches, eval_every, find_nan, freeze, grad_clip, steps, stop_after)\n"},
      {"train TOY --set model.norm.epss=1", 2,
       "--set model.norm.epss=1: /model/norm/epss: unknown key; did you mean \"eps\"? (known: composed, eps, type)\n"},
      {"train TOY --set train.optimizer.lr=1", 2,
       "--set train.optimizer.lr=1: /train/optimizer: unknown key; /optimizer stands for itself, beside /train\n"},
      {"train TOY --set train.steps=1e18", 2,
       "--set train.steps=1e18: /train/steps: must be an integer, above 2^53 with all its digits, got 1e+18\n"},
      {"train TOY --set modle.n_heads=2", 2,
       "--set modle.n_heads=2: /modle: unknown key; did you mean \"model\"? (known: $schema, data, inspect, model, optimizer, schedule, seed, train)\n"},
      {"train TOY --set model.n_heads=5", 2,
       "--set model.n_heads=5: /model/n_heads: must divide emb_dim = 32, got 5\n"},
      {"train TOY --set train.steps=ten", 2,
       "--set train.steps=ten: /train/steps: must be an integer, got the text \"ten\"\n"},
      {"train TOY --set train.steps=2.5", 2,
       "--set train.steps=2.5: /train/steps: must be an integer, got 2.5\n"},
      {"train TOY --set train.steps=0", 2,
       "--set train.steps=0: /train/steps: must be at least 1, got 0\n"},
      {"train TOY --set model.drop_rate=-0.1", 2,
       "--set model.drop_rate=-0.1: /model/drop_rate: must be at least 0 and less than 1, got -0.1\n"},
      {"train TOY --set model.norm.type=layer_nrom", 2,
       "--set model.norm.type=layer_nrom: /model/norm/type: unknown norm \"layer_nrom\"; did you mean \"layer_norm\"? (known: layer_norm, none, rms_norm)\n"},
      {"train TOY --set model.type=gtp", 2,
       "--set model.type=gtp: /model/type: unknown model \"gtp\"; did you mean \"gpt\"? (known: gpt)\n"},
      {"train TOY --set optimizer.type=adm", 2,
       "--set optimizer.type=adm: /optimizer/type: unknown optimizer \"adm\"; did you mean \"adam\"? (known: adam, adamw, sgd)\n"},
      {"train TOY --set 'optimizer.betas=[0.9]'", 2,
       "--set optimizer.betas=[0.9]: /optimizer/betas: must have 2 numbers, got 1\n"},
      {"train TOY --set 'optimizer.betas=[0.9, 1]'", 2,
       "--set optimizer.betas=[0.9, 1]: /optimizer/betas/1: must be at least 0 and less than 1, got 1\n"},
      {"train TOY --set 'optimizer={\"type\": \"sgd\", \"nesterov\": true}'", 2,
       "--set optimizer={\"type\": \"sgd\", \"nesterov\": true}: /optimizer/nesterov: needs momentum above 0 and dampening 0, got 0 and 0\n"},
      {"train TOY --set train.epochs=2 --set train.steps=3", 2,
       "--set train.epochs=2: /train/epochs: replaces steps; give one of them\n"},
      {"train TOY --set schedule.min_lr=1", 2,
       "--set schedule.min_lr=1: /schedule/min_lr: must be at most lr = 0.01, got 1\n"},
      {"train TOY --set steps", 2,
       "--set steps: must be KEY=VALUE, such as train.steps=500\n"},
      {"train TOY --set train.steps.more=1", 2,
       "--set train.steps.more=1: /train/steps: is not an object, it has no keys\n"},
      {"train TOY --set 'train.freeze=[\"gain\"]'", 2,
       "--set train.freeze=[\"gain\"]: /train/freeze: no parameter is named \"gain\"; a part of a name (scale, norm1) or a pattern (*.norm1.*) will do too\n"},
      {"train twice.json", 2,
       "twice.json: /seed: duplicate key\n"},
      {"train huge.json", 2,
       "huge.json: a number must not exceed the largest double, got 1e400\n"},
      {"train comma.json", 2,
       "comma.json: line 1, column 24: unexpected '}'; expected string literal\n"},
      {"train nan.json", 2,
       "nan.json: line 1, column 10: invalid literal; last read: '\"seed\": N'\n"},
      {"train list.json", 2,
       "list.json: a config must be a JSON object, { ... }\n"},
      {"train empty.json", 2,
       "empty.json: expected JSON, got an empty text\n"},
      {"train missing.json", 1,
       "\"missing.json\": cannot be opened: No such file or directory\n"
       "  try: a file in that folder: batch.json, comma.json, empty.json, huge.json and 3 more\n"},
      {"train nowhere/toy.json", 1,
       "\"nowhere/toy.json\": cannot be opened: No such file or directory\n"
       "  try: a path relative to the current folder; there is no folder \"nowhere\"\n"},
      {"train folder", 1,
       "\"folder\": need a file, got a folder\n"},
      {"train TOY --set data.path=missing.txt", 1,
       "\"FOLDER/missing.txt\": cannot be opened: No such file or directory\n"
       "  try: a file in that folder: empty.txt, latin1.txt, short.txt\n"},
      {"train TOY --set data.path=", 2,
       "--set data.path=: /data/path: must name a text file\n"},
      {"train TOY --set data.path=folder", 1,
       "\"FOLDER/folder\": need a file, got a folder\n"},
      {"train TOY --set data.path=short.txt", 1,
       "\"FOLDER/short.txt\", training part at val_fraction 0.1 of 9 tokens: 8 tokens, need at least 17\n"
       "  context_length 16, and one more token, the last target\n"
       "  try: a smaller context_length or a longer text\n"},
      {"train TOY --set data.path=empty.txt", 1,
       "\"FOLDER/empty.txt\": char tokenizer: needs at least one character, got an empty text\n"},
      {"train TOY --set data.path=latin1.txt", 1,
       "\"FOLDER/latin1.txt\": char tokenizer: text must be UTF-8, but byte 0xE9 at byte offset 3 begins a character that the text cuts off\n"
       "  try: save the text as UTF-8\n"},
      {"train TOY --set data.val_fraction=0.002", 1,
       "\"SOURCE/data/boats.txt\", validation part at val_fraction 0.002 of 6033 tokens: 13 tokens, need at least 17\n"
       "  context_length 16, and one more token, the last target\n"
       "  try: a smaller context_length or a longer text\n"},
      {"train TOY --set 'data={\"type\": \"batch\", \"path\": \"batch.json\"}'", 1,
       "\"FOLDER/batch.json\": every input must have a target\n"
       "  /inputs [1, 2]   /targets [1, 1]\n"},
      {"train TOY --out run", 1,
       "train: 'run' already holds a run\n"
       "  try: --overwrite, or another folder: --out runs/NAME, or resume it: --resume run\n"},
      {"train TOY --out folder", 1,
       "train: --out 'folder' holds something that is not part of a run: mine.txt\n"
       "  try: another folder: --out runs/NAME\n"},
      {"train TOY --out short.txt", 1,
       "train: --out 'short.txt' is a file; a run needs a folder\n"},
      {"train TOY --out ''", 2,
       "train: --out must not be empty\n"
       "  try: handgrad train --help\n"},
      {"train TOY --out a --out b", 2,
       "train: --out can be given once, and came 2 times\n"
       "  try: handgrad train --help\n"},
      {"trace --compare x", 2,
       "trace: --compare needs 2 values, got 1\n"
       "  try: handgrad trace --help\n"},
      {"trace TOY", 2,
       "trace: needs --out FILE, where the numbers go, or --graph FILE.dot\n"},
      {"trace TOY --graph toy.png", 2,
       "trace: --graph must name a .dot or a .svg file, got 'toy.png'\n"},
      {"trace TOY --out toy.st --depth 2", 2,
       "trace: --depth belongs to --graph FILE.dot\n"},
      {"trace TOY --graph there.dot", 1,
       "trace: --graph 'there.dot' exists\n"
       "  try: --overwrite, or another name\n"},
      {"trace TOY --graph nowhere/toy.dot", 1,
       "\"nowhere/toy.dot\": cannot be written: No such file or directory\n"},
      {"train TOY --pace fast", 2,
       "train: --pace must be steps per second or 'key', got 'fast'\n"
       "  try: --pace 20 or --pace key\n"},
      {"train TOY --threads 0", 2,
       "train: --threads must be 1 to 1024, got 0\n"
       "  try: handgrad train --help\n"},
      {"train TOY --threads", 2,
       "train: --threads needs a value\n"
       "  try: handgrad train --help\n"},
      {"train TOY --dtype float16", 2,
       "train: --dtype must be float32 or float64, got float16\n"
       "  try: handgrad train --help\n"},
      {"train TOY --dry-rnu", 2,
       "train: there is no option --dry-rnu; did you mean --dry-run?\n"
       "  try: handgrad train --help\n"},
      {"train TOY extra", 2,
       "train: takes no more operands, got \"extra\"\n"
       "  try: handgrad train --help\n"},
      {"train TOY --weights junk.safetensors", 1,
       "\"junk.safetensors\": a safetensors file has at least 8 bytes, this one 5\n"},
      {"train TOY --weights missing.safetensors", 1,
       "\"missing.safetensors\": does not exist\n"
       "  try: a run's folder, a checkpoint's, or a safetensors file\n"},
      {"train TOY --weights folder", 1,
       "\"folder\": has neither a run nor a checkpoint\n"
       "  try: the folder of a run, such as runs/toy\n"},
      {"train", 2,
       "train: needs a config\n"
       "  try: handgrad train configs/toy.json\n"},
      {"train --resume nowhere", 1,
       "train: 'nowhere' does not exist\n"
       "  try: the folder that --out named, such as runs/toy\n"},
      {"train --resume run --out other", 2,
       "train: --out cannot be given with --resume, which continues in the run's folder with the run's weights\n"},
      {"train --resume run --set optimizer.type=sgd --set 'optimizer={\"type\": \"sgd\"}' --set train.steps=9", 1,
       "\"run/checkpoints/step-000003\": holds the state of optimizer adamw, this run has sgd\n"},
      {"inspect nowhere", 1,
       "inspect: 'nowhere' does not exist\n"
       "  try: a run folder or a safetensors file\n"},
      {"inspect run gamma", 1,
       "inspect run: nothing recorded is named 'gamma'\n"
       "  recorded  trf_blocks.0.norm1.scale, trf_blocks.0.norm1.shift, trf_blocks.0.norm2.scale and 3 more; 12 others are in the checkpoints\n"
       "  try: a name, a part of one (scale, norm1) or a pattern ('*.scale'); inspect.parameters of the config chooses\n"},
      {"inspect run --step 250", 1,
       "inspect run: no step 250; this run has 3 steps\n"
       "  recorded  steps 0 to 3, every step\n"
       "  try: --step last\n"},
      {"inspect run --step 3:1", 2,
       "inspect run: --step must name the smaller step first, got '3:1'\n"},
      {"inspect run --step soon", 2,
       "inspect run: --step must be a step, a range or 'last', got 'soon'\n"
       "  try: --step 250, --step 1:5, --step last\n"},
      {"inspect run --format xml", 2,
       "inspect: --format must be table, csv or json, got xml\n"
       "  try: handgrad inspect --help\n"},
      {"inspect junk.safetensors", 1,
       "\"junk.safetensors\": a safetensors file has at least 8 bytes, this one 5\n"},
      {"inspect folder", 1,
       "inspect: 'folder' holds no recorded parameters (recording.bin)\n"
       "  try: train with /inspect/parameters in the config, such as [\"*norm*\"]\n"},
      {"inspect", 2,
       "inspect: needs RUN_OR_FILE, a run's folder, or a safetensors file\n"
       "  try: handgrad inspect --help\n"},
      {"generate run", 2,
       "generate: needs --prompt TEXT, the text to continue\n"
       "  try: handgrad generate --help\n"},
      {"generate run --prompt ''", 2,
       "generate: --prompt must not be empty\n"
       "  try: handgrad generate --help\n"},
      {"generate run --prompt T --seed -1", 2,
       "generate: --seed must be at least 0, got -1\n"
       "  try: handgrad generate --help\n"},
      {"generate run --prompt T --top-k 99999999999999999999", 2,
       "generate: --top-k must be 0 to 1073741824, got 99999999999999999999\n"
       "  try: handgrad generate --help\n"},
      {"generate run --prompt 'T\xe2\x82\xac'", 1,
       "char tokenizer: every character must be one of the 33 it knows, got \"\xe2\x82\xac\" (U+20AC) at character 1, byte offset 1\n"},
      {"generate run --prompt T --temperature -1", 2,
       "generate: --temperature must be at least 0, got -1\n"
       "  try: handgrad generate --help\n"},
      {"generate nowhere --prompt T", 1,
       "\"nowhere\": does not exist\n"
       "  try: the folder of a run, such as runs/toy\n"},
      {"explain layer_norm 2 2 6 6 --scale 1,1,2", 2,
       "explain layer_norm: --scale needs 4 numbers, one for each feature of x, got 3\n"
       "  x      2 2 6 6\n"
       "  scale  1 1 2\n"
       "  try    --scale 1,1,2,1\n"},
      {"explain layer_norm 2 2 6 6 --upstream 1,0,0,0,0", 2,
       "explain layer_norm: --upstream needs 4 numbers, one for each number of the output, got 5\n"
       "  x         2 2 6 6\n"
       "  upstream  1 0 0 0 0\n"
       "  try       --upstream 1,0,0,0\n"},
      {"explain layer_norm 2 2 6 6 / 1 2 3", 2,
       "explain layer_norm: every row needs as many numbers as the first, 4, got 3 in row 2\n"
       "  x  2 2 6 6 / 1 2 3\n"},
      {"explain layer_norm", 2,
       "explain layer_norm: needs numbers; rows are separated by a slash\n"
       "  try  handgrad explain layer_norm 2 2 6 6\n"},
      {"explain layer_norm 2 two 6 6", 2,
       "explain layer_norm: x must be numbers, got \"two\"\n"},
      {"explain layer_norm 2 2 6 6 --eps -1", 2,
       "explain layer_norm: --eps must be at least 0, got -1\n"},
      {"explain layer_norm 2 2 6 6 --weight 1,1", 2,
       "explain layer_norm: takes no --weight; it takes --eps, --scale, --shift, --upstream and --lr\n"},
      {"explain layer_norm 2 2 6 6 --layer norm1", 2,
       "explain layer_norm: --layer belongs to a run or a config, not to an operation\n"
       "  try: handgrad explain runs/toy --layer final_norm\n"},
      {"explain layer_norm 2 2 6 6 --part middle", 2,
       "explain: --part must be all, forward, backward or step, got middle\n"
       "  try: handgrad explain --help\n"},
      {"explain softmax 1 2 3 --part step", 2,
       "explain softmax: there is no part step here\n  try: --part forward or --part backward\n"},
      {"explain softmax 1 2 --json --blank", 2, "explain softmax: --json and --blank do not go together\n  try: one of them\n"},
      {"explain run --layer final_norm --at -.5", 2,
       "explain run: --at: char tokenizer: every character must be one of the 33 it knows, got \"-\" (U+002D) at character 0, byte offset 0\n"},
      {"explain linear 2 3", 2,
       "explain linear: needs --weight, a row of it for each output\n"
       "  x    2 3\n"
       "  try  handgrad explain linear 2 3 --weight 1,0/0,1/1,1\n"},
      {"explain cross_entropy 2 1 0 --target 3", 2,
       "explain cross_entropy: --target must lie in 0..2, got 3\n"
       "  x       2 1 0\n"
       "  target  3\n"
       "  try     --target 0\n"},
      {"explain layer_nrom 2 2 6 6", 2,
       "explain: there is no operation, run or config \"layer_nrom\"; did you mean \"layer_norm\"? (known: adam, attention, cross_entropy, gelu, layer_norm, linear, rms_norm, softmax)\n"},
      {"explain", 2,
       "explain: needs WHAT, an operation, a run's folder, or a config\n"
       "  try: handgrad explain --help\n"},
      {"explain run", 2,
       "explain run: needs --layer, a module of the model\n"
       "  modules  tok_emb, pos_emb, drop_emb, trf_blocks, trf_blocks.0, trf_blocks.0.norm1 and 14 more\n"
       "  try: --layer final_norm\n"},
      {"explain run --layer norm3", 2,
       "explain run: there is no module \"norm3\"; did you mean \"norm1\"?\n"
       "  modules  tok_emb, pos_emb, drop_emb, trf_blocks, trf_blocks.0, trf_blocks.0.norm1 and 14 more\n"
       "  try: --layer norm1\n"},
      {"explain run --layer final_norm --step 4", 1,
       "explain run: no step 4; this run has 3 steps\n"
       "  try: --step 3\n"},
      {"explain run --layer final_norm --step soon", 2,
       "explain run: --step must be a step or 'last', got 'soon'\n"
       "  try: --step 100, --step last\n"},
      {"explain run --layer final_norm --row 99,0", 2,
       "explain run: --row needs B,T with B in 0..15, got 99,0\n"
       "  try: --row 0,0\n"},
      {"explain run --layer final_norm --at ''", 2,
       "explain: --at must not be empty\n"
       "  try: handgrad explain --help\n"},
      {"explain softmax 1 2 --blank -.5 --part step", 2, "explain: there is no option -.5\n  try: handgrad explain --help\n"},
      {"explain layer_norm 2 2 6 6 --eps -.5", 2,
       "explain layer_norm: --eps must be at least 0, got -0.5\n"},
      {"explain run --layer final_norm --at 'The blue boat brought'", 2,
       "explain run: --at must have at most 16 tokens, the context of this model, got 21\n"},
      {"explain run --layer final_norm --at The --row 0,0", 2,
       "explain run: --at and --row both choose a row; give one of them\n"},
      {"explain run --layer final_norm --scale 1,1", 2,
       "explain run: takes no --scale: it comes from the model\n"},
      {"explain folder --layer final_norm", 1,
       "explain: 'folder' holds no run: there is no config.json in it\n"
       "  try: the folder of a run, such as runs/toy\n"},
      {"nonsense", 2,
       "handgrad: there is no \"nonsense\" (known: bench, check, config, explain, generate, inspect, layers, report, trace, train)\n"
       "  try: handgrad --help\n"},
      {"config", 2,
       "config: needs show, schema or reference\n"
       "  try: handgrad config --help\n"},
      {"config shwo", 2,
       "config: there is no \"shwo\"; did you mean \"show\"? (known: reference, schema, show)\n"
       "  try: handgrad config --help\n"},
      {"config show", 2,
       "config show: needs CONFIG, the config, a JSON file\n"
       "  try: handgrad config show --help\n"},
      {"layers gelu", 2,
       "layers: nothing is called \"gelu\" (known: adam, adamw, batch, char, constant, cosine, data source, feed-forward, feed_forward, gpt, layer_norm, linear, model, none, norm, optimizer, random, rms_norm, schedule, sgd, text, tokenizer)\n"},
      {"bench step", 2,
       "bench step: needs CONFIG, the config, a JSON file\n"
       "  try: handgrad bench step --help\n"},
      // clang-format on
  };
  return calls;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// What the calls need to go wrong with.
void furnish(const std::filesystem::path& folder) {
  const std::pair<const char*, std::string> files[] = {
      {"short.txt", "The boat."},
      {"empty.txt", ""},
      {"latin1.txt", "caf\xe9"},
      {"twice.json", "{\"seed\": 1, \"seed\": 2}"},
      {"huge.json", "{\"train\": {\"steps\": 1e400}}"},
      {"comma.json", "{\"train\": {\"steps\": 3, }}"},
      {"nan.json", "{\"seed\": NaN}"},
      {"list.json", "[1]"},
      {"empty.json", ""},
      {"batch.json", "{\"inputs\": [[1, 2]], \"targets\": [[1]]}"},
      {"junk.safetensors", "junk\n"},
      {"there.dot", "digraph {}"},
      {"folder/mine.txt", "x"},
  };
  std::filesystem::create_directory(folder / "folder");
  for (const auto& [name, text] : files) std::ofstream(folder / name, std::ios::binary) << text;
}

std::size_t files_in(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    count += entry.is_regular_file();
  return count;
}

}  // namespace

TEST_CASE("wrong configs and calls: the whole message, the exit status, and nothing written") {
  const TemporaryFolder folder;
  furnish(folder.path());
  const std::string toy = config_path("toy.json");
  REQUIRE(handgrad_in(folder.path(), "train " + toy + " --quiet --set train.steps=3 --out run").status == 0);
  const std::size_t files = files_in(folder.path());
  for (const WrongCall& call : wrong_calls()) {
    CAPTURE(call.arguments);
    std::string arguments = call.arguments;
    replace_all(arguments, "TOY", toy);
    const Outcome outcome = handgrad_in(folder.path(), arguments);
    std::string message = outcome.err;
    replace_all(message, folder.path().string(), "FOLDER");
    replace_all(message, HANDGRAD_SOURCE_DIR, "SOURCE");
    CHECK(message == call.message);
    CHECK(outcome.status == call.status);
    CHECK(outcome.out == "");
    for (const char* inside : {"std::", "handgrad::", "terminate", "exception"})
      CHECK(message.find(inside) == std::string::npos);
    CHECK(files_in(folder.path()) == files);
  }
  CHECK(wrong_calls().size() >= 60);
}
