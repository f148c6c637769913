// The recorded vectors of a run: scale and shift of every norm, or whatever the model's norms learn.

/// One parameter over the recorded steps; its series are decoded on first use.
class Trajectory {
  constructor(run, data) {
    this.run = run;
    Object.assign(this, {name: data.name, owner: data.owner, kind: data.kind, size: data.size, common: data.start});
    this.features = data.features;
    this.columns = run.norms.columns;
    this.agreement = data.agreement;
    this.below = data.below;
    this.half = data.half;
    this.data = data;
    const bytes = run.norms.bytes;
    this.values = decode(data.values, bytes);
    this.range = decode(data.range, bytes);
  }

  get gradients() { return (this.gradients_ ??= decode(this.data.gradients, this.run.norms.bytes)); }
  get steps() {
    const text = this.data.updates ?? this.data.before;
    return (this.steps_ ??= text === undefined ? null : decode(text, this.run.norms.bytes));
  }

  /// `c`: a column; `f`: a position in `features`.
  value(c, f) { return this.values[c * this.features.length + f]; }
  start(f) { return this.value(0, f); }
  distance(c, f) { return this.value(c, f) - this.start(f); }
  gradient(c, f) {
    const value = this.gradients[c * this.features.length + f];
    return Number.isNaN(value) ? null : value;
  }
  update(c, f) {
    if (c === 0) return null;
    const at = c * this.features.length + f;
    if (this.data.updates !== undefined) return this.steps[at];
    return this.values[at] - (this.steps === null ? this.value(c - 1, f) : this.steps[at]);
  }
  /// Over all features, also those without a row.
  least(c) { return this.range[2 * c]; }
  most(c) { return this.range[2 * c + 1]; }
  last() { return this.columns.length - 1; }

  /// The last column that is not after `step`.
  column(step) {
    let low = 0, high = this.columns.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.columns[middle] <= step) low = middle; else high = middle - 1;
    }
    return low;
  }
  /// "1", "0", or "its start" when the elements started at different values.
  startText() { return this.common === null ? "its start" : general(this.common); }
  /// The largest distance from the start of any row at any step, and how far below and above it they moved.
  extent() {
    if (this.extent_) return this.extent_;
    let low = 0, high = 0;
    for (let c = 0; c < this.columns.length; ++c)
      for (let f = 0; f < this.features.length; ++f) {
        const d = this.distance(c, f);
        if (d < low) low = d;
        if (d > high && isFinite(d)) high = d;
      }
    return (this.extent_ = {low, high, largest: Math.max(-low, high)});
  }
}

function readRun(data) {
  const run = {...data, trajectories: []};
  if (data.norms) run.trajectories = data.norms.parameters.map((parameter) => new Trajectory(run, parameter));
  const owners = run.trajectories.length > 0 ? run.trajectories : run.row?.norms ?? [];  // with nothing recorded there is still the row
  run.owners = [...new Set(owners.map(({owner}) => owner))];
  run.kinds = [...new Set(run.trajectories.map((trajectory) => trajectory.kind))];
  run.find = (owner, kind) => run.trajectories.find((trajectory) => trajectory.owner === owner && trajectory.kind === kind) ?? null;
  return run;
}

/// "norm1" where no other norm's path ends with it, "trf_blocks.3.norm1" where several do.
function shortNames(owners) {
  const last = (owner) => owner.slice(owner.lastIndexOf(".") + 1);
  return owners.map((owner) => {
    const alone = owners.filter((other) => last(other) === last(owner)).length === 1;
    return [owner, (alone ? last(owner) : owner) || "(model)"];
  });
}

/// "Scale moved from 1 by up to 0.826 (final_norm [11])."
function movedSentence(run, kind) {
  let best = null, distance = 0;
  const trajectories = run.trajectories.filter((trajectory) => trajectory.kind === kind);
  for (const trajectory of trajectories) {
    const d = Math.abs(trajectory.distance(trajectory.last(), 0));
    if (best === null || d > distance || Number.isNaN(d)) [best, distance] = [trajectory, d];
    if (Number.isNaN(d)) break;
  }
  const name = kind[0].toUpperCase() + kind.slice(1);
  const start = trajectories.every((trajectory) => trajectory.common === best.common) ? best.startText() : "its start";
  if (distance === 0) return `${name} stayed at ${start}.`;
  const owner = shortNames(run.owners).find(([full]) => full === best.owner)[1];
  return `${name} moved from ${start} by up to ${fixed(distance)} (${owner} [${best.features[0]}]).`;
}
