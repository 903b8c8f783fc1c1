// The run: columns, the orders in which they are looked up, and every question of the views. No DOM.

import { contactsOf } from "./contacts.js";
import { NEVER, countOf, grouped, intervals, lastUpTo, offsets, ownerOf, ranks, sortedByTime } from "./orders.js";

/** The kinds of violations, as the verifier numbers them; a run of another kind has its own. */
const WRONG_WORDS = ["late", "twice", "unknown"];
export const LOST_WORDS = ["expired undelivered", "dropped"];
/** Times of points are stored in steps of this length; see `play/places.py`. */
const POINT_MS = 100;
/** How a message was released; see `play/encode.py`. */
const RELEASED_NEVER = 0, AT_ONCE = 1, LATER = 2, AGAIN = 3, WITH = 4;
/** Stands for the sender of a delivery that has no reception in the log. */
export const NO_RECEPTION = -2;

/** Writes the numbers times a factor into `out`: a loop is ten times as fast as `from` with a function. */
function scaled(numbers, factor, out) {
  for (let i = 0; i < out.length; i++) out[i] = numbers[i] * factor;
  return out;
}

export class Model {
  constructor(head, c) {
    this.about = head.about;
    this.extra = head.extra;
    /** A kind without a clock of its day sets how times and lines of an axis are called. */
    this.clockOf = this.tickOf = null;
    this.words = { message: "Message", by: "Broadcast by ", does: "broadcasts" };
    this.columns = c;
    this.wrongWords = head.wrong_words?.length ? head.wrong_words : WRONG_WORDS;
    this.head = head;
    this.names = head.names;
    this.startUs = head.start_us;
    this.length = head.length;
    this.plane = head.plane;
    this.nodes = this.names.length;
    this.origin = c["message.origin"];
    this.sent = c["message.t"];
    this.seq = c["message.seq"];
    this.seqHigh = c["message.seq_high"] ?? null;
    this.life = c["message.life"] ?? null;
    this.messages = this.sent.length;
    /** Messages with a broadcast in the log; the others come after them. */
    this.spoken = this.messages - head.ghosts;
    this.rank = ranks(this.origin, this.nodes);
    this.hasPast = "past.back" in c;
    this._readPast(c);
    this._readReceptions(c);
    this.wrong = { t: c["wrong.t"], node: c["wrong.node"], message: c["wrong.message"], kind: c["wrong.kind"] };
    this._readChains(c);
    this.lost = { t: c["lost.t"], node: c["lost.node"], message: c["lost.message"], kind: c["lost.kind"] };
    this.stays = intervals(c["stay.t"], c["stay.length"], this.length, { node: c["stay.node"], crashed: c["stay.crashed"] });
    this.stayOf = offsets(countOf(c["stay.node"], this.nodes));
    if (this.plane) this._readPoints(c);
    this.contacts = contactsOf(this, c);
  }

  _readPast(c) {
    const counts = c["past.count"] ?? new Int32Array(this.messages);
    this.pastAt = offsets(counts);
    this.past = c["past.back"] ? new Int32Array(c["past.back"].length) : new Int32Array(0);
    for (let m = 0; m < this.messages; m++)
      for (let i = this.pastAt[m]; i < this.pastAt[m + 1]; i++) this.past[i] = m - c["past.back"][i];
    const [at, effects] = grouped(this.past, this.messages, ownerOf(this.pastAt));
    this.effectAt = at;
    this.effects = effects;
  }

  _readReceptions(c) {
    this.recAt = offsets(c["node.receptions"]);
    this.recT = c["reception.t"];
    this.recMessage = c["reception.message"];
    this.recSender = c["reception.sender"];
    this.recNode = ownerOf(this.recAt);
    /** How long the frame was under way, where the log tells when it was sent. */
    this.recFlight = c["reception.flight"] ?? null;
    const size = (this.receptions = this.recT.length);
    this.recEnd = new Int32Array(size);
    const code = c["reception.release"], later = c["reception.later"];
    /** Receptions of messages that the node had before: nothing waits there. */
    this.again = new Set();
    for (let i = 0, next = 0; i < size; i++) {
      const how = code[i], t = this.recT[i];
      if (how === RELEASED_NEVER) this.recEnd[i] = NEVER;
      else if (how === LATER) this.recEnd[i] = t + later[next++];
      else if (how >= WITH) this.recEnd[i] = this.recT[i + how - WITH];
      else this.recEnd[i] = t;
      if (how === AGAIN) this.again.add(i);
    }
    this.byTime = sortedByTime(this.recT, this.length);
    // Counting sort keeps the order of what it is given: by message, and in time within each.
    this.msgAt = offsets(countOf(this.recMessage, this.messages));
    this.byMessage = new Int32Array(size);
    const fill = this.msgAt.slice();
    for (let i = 0; i < size; i++) {
      const row = this.byTime[i];
      this.byMessage[fill[this.recMessage[row]]++] = row;
    }
  }

  /** The proofs of the first violations: rows of time, node, message, and whether it is a broadcast. */
  _readChains(c) {
    const at = offsets(c["chain.count"]);
    this.chains = Array.from(c["chain.count"], (_, i) => {
      const steps = [];
      for (let k = at[i]; k < at[i + 1]; k++)
        steps.push({ t: c["chain.t"][k], node: c["chain.node"][k], message: c["chain.message"][k], isBroadcast: c["chain.spoken"][k] === 1 });
      return steps;
    });
  }

  _readPoints(c) {
    const { unit } = this.plane;
    this.pointAt = offsets(c["node.points"]);
    const size = c["point.t"].length;
    this.pointT = scaled(c["point.t"], POINT_MS, new Int32Array(size));
    this.pointX = scaled(c["point.x"], unit, new Float32Array(size));
    this.pointY = scaled(c["point.y"], unit, new Float32Array(size));
    this.pointGap = c["point.gap"];
    this.cursor = this.pointAt.slice(0, this.nodes);
    /** The lines of a map below the nodes, or null. */
    this.map = "map.points" in c ? { at: offsets(c["map.points"]), x: Float32Array.from(c["map.x"], (x) => x * unit), y: Float32Array.from(c["map.y"], (y) => y * unit) } : null;
  }

  // ---- time ----

  clock(t) {
    if (this.clockOf) return this.clockOf(t);
    const { day, hands, fine } = this.parts(t);
    return `${this.length > 86_400_000 ? `${day} ` : ""}${hands}${this.length < 20_000 ? fine : ""}`;
  }

  /** The day, the time of day in seconds, and the milliseconds. */
  parts(t) {
    const ms = this.startUs / 1000 + t, seconds = Math.floor(ms / 1000), two = (n) => String(n).padStart(2, "0");
    return {
      day: `day ${Math.floor(seconds / 86_400) - Math.floor(this.startUs / 86_400_000_000) + 1}`,
      hands: `${two(Math.floor(seconds / 3600) % 24)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`,
      fine: `.${String(Math.floor(ms % 1000)).padStart(3, "0")}`,
    };
  }

  /** The time beside a line of an axis whose lines are `step` apart. */
  tick(t, step) {
    if (this.tickOf) return this.tickOf(t);
    if (this.clockOf) return this.clockOf(t).replace(/^\D+/, "");
    const { day, hands, fine } = this.parts(t);
    if (step < 1000) return hands.slice(6) + fine;
    return step < 60_000 ? hands : step < 86_400_000 ? hands.slice(0, 5) : day;
  }

  // ---- names ----

  title(m) {
    return m < this.spoken ? `${this.names[this.origin[m]]} #${this.rank[m]}` : `${this.names[this.origin[m]] ?? this.origin[m]}:${this.seqText(m)}`;
  }

  /** The sequence number in full: it may have more bits than a number of the page. */
  seqText(m) {
    return this.seqHigh ? String((BigInt(this.seqHigh[m]) << 32n) | BigInt(this.seq[m])) : String(this.seq[m]);
  }

  // ---- who is there, who meets ----

  isPresent(node, t) {
    for (let i = this.stayOf[node]; i < this.stayOf[node + 1]; i++)
      if (this.stays.t[i] <= t && t < this.stays.end[i]) return true;
    return false;
  }

  /** Writes the place of a node into `out`; false where it has none. */
  place(node, t, out) {
    const first = this.pointAt[node], end = this.pointAt[node + 1];
    if (first === end) return false;
    let at = this.cursor[node];
    if (at >= end - 1 || this.pointT[at] > t || at < first) at = first;
    if (t - this.pointT[at] > 600_000) at = lastUpTo(this.pointT, first, end, t, at);
    while (at + 1 < end && this.pointT[at + 1] <= t) at++;
    this.cursor[node] = at;
    if (this.pointT[at] > t) return false;
    if (at + 1 === end || this.pointGap[at + 1]) {
      if (t > this.pointT[at]) return false;
      out.x = this.pointX[at]; out.y = this.pointY[at];
      return true;
    }
    const share = (t - this.pointT[at]) / (this.pointT[at + 1] - this.pointT[at]);
    out.x = this.pointX[at] + share * (this.pointX[at + 1] - this.pointX[at]);
    out.y = this.pointY[at] + share * (this.pointY[at + 1] - this.pointY[at]);
    return true;
  }

  // ---- messages ----

  deadline(m) {
    return this.life ? this.sent[m] + this.life[m] : NEVER;
  }

  rowOf(node, m) {
    for (let i = this.msgAt[m]; i < this.msgAt[m + 1]; i++) if (this.recNode[this.byMessage[i]] === node) return this.byMessage[i];
    return -1;
  }

  /** When a node delivered a message; NEVER if it did not. Its own it delivers when it speaks. */
  deliveredAt(node, m) {
    if (this.origin[m] === node) return this.sent[m];
    const row = this.rowOf(node, m);
    return row < 0 ? NEVER : this.recEnd[row];
  }

  /** The causes that a message names, that are alive, and that the node has not delivered at t. */
  missing(node, m, t) {
    const out = [];
    for (let i = this.pastAt[m]; i < this.pastAt[m + 1]; i++) {
      const cause = this.past[i];
      if (this.deliveredAt(node, cause) > t && this.deadline(cause) > t) {
        const row = this.origin[cause] === node ? -1 : this.rowOf(node, cause);
        out.push({ cause, isHere: row >= 0 && this.recT[row] <= t });
      }
    }
    return out;
  }

  /** What it waits for in the end: causes of causes that have not come. At most `most` of them. */
  roots(node, m, t, most = 6) {
    const seen = new Set([m]), stack = [m], out = [];
    while (stack.length && out.length < most && seen.size < 500)
      for (const { cause, isHere } of this.missing(node, stack.pop(), t)) {
        if (seen.has(cause)) continue;
        seen.add(cause);
        if (isHere) stack.push(cause);
        else out.push(cause);
      }
    return out;
  }

  /** The proof of each late delivery of m: what the node had delivered before it, as the verifier found. */
  proofs(m) {
    const out = [], { wrong, chains } = this;
    for (let i = 0; i < wrong.t.length; i++) {
      if (wrong.message[i] !== m) continue;
      const chain = chains[i] ?? [];
      const follower = this.wrongWords[wrong.kind[i]] === "late" && chain.length > 1 ? chain[chain.length - 2] : null;
      out.push({ node: wrong.node[i], t: wrong.t[i], kind: wrong.kind[i], chain, follower: follower ? follower.message : -1, before: follower ? follower.t : wrong.t[i] });
    }
    return out;
  }

  /** One number per node for a message: when it came, when it was delivered, from whom. */
  spread(m) {
    const came = new Int32Array(this.nodes).fill(NEVER), done = came.slice(), from = new Int32Array(this.nodes).fill(-1);
    came[this.origin[m]] = done[this.origin[m]] = this.sent[m];
    const rows = this.byMessage.subarray(this.msgAt[m], this.msgAt[m + 1]);
    for (const row of rows) {
      const node = this.recNode[row];
      if (came[node] !== NEVER) continue;
      came[node] = this.recT[row];
      done[node] = this.recEnd[row];
      from[node] = this.recSender[row];
    }
    return { message: m, rows, came, done, from, deadline: this.deadline(m) };
  }

  /** 1: in the past of m, 2: in its future; and how many of each. */
  cone(m) {
    const flags = new Uint8Array(this.messages);
    const walk = (at, list, flag) => {
      const stack = [m];
      let count = 0;
      while (stack.length) {
        const x = stack.pop();
        for (let i = at[x]; i < at[x + 1]; i++) {
          if (flags[list[i]]) continue;
          flags[list[i]] = flag;
          count++;
          stack.push(list[i]);
        }
      }
      return count;
    };
    const past = walk(this.pastAt, this.past, 1);
    return { flags, past, future: walk(this.effectAt, this.effects, 2) };
  }

  /** What a node does over time: steps of [t, holds, waits, given up]. */
  biography(node) {
    const steps = [], done = new Map(), { recT, recEnd, recMessage } = this;
    for (let m = 0; m < this.messages; m++) if (this.origin[m] === node) done.set(m, this.sent[m]);
    for (let i = this.recAt[node]; i < this.recAt[node + 1]; i++) if (recEnd[i] !== NEVER) done.set(recMessage[i], recEnd[i]);
    for (const [m, t] of done) {
      steps.push([t, 1, 0, 0]);
      if (this.life) steps.push([this.deadline(m), -1, 0, 0]);
    }
    const lastStay = this.stays.end[this.stayOf[node + 1] - 1] ?? this.length;
    for (let i = this.recAt[node]; i < this.recAt[node + 1]; i++) {
      if (recEnd[i] === recT[i]) continue;
      steps.push([recT[i], 0, 1, 0], [Math.min(recEnd[i], this.deadline(recMessage[i]), lastStay), 0, -1, 0]);
    }
    // Given up: a cause of what it delivered, that it had not delivered itself by then.
    const gaveUp = new Map();
    for (const [m, t] of done)
      for (let i = this.pastAt[m]; i < this.pastAt[m + 1]; i++) {
        const cause = this.past[i];
        if ((done.get(cause) ?? NEVER) > t) gaveUp.set(cause, Math.min(t, gaveUp.get(cause) ?? NEVER));
      }
    for (const t of gaveUp.values()) steps.push([t, 0, 0, 1]);
    steps.sort((a, b) => a[0] - b[0]);
    let [holds, waits, given] = [0, 0, 0];
    const out = steps.map(([t, h, w, g]) => [t, (holds += h), (waits += w), (given += g)]);
    return { steps: out, gaveUp, done };
  }

  waitingAt(node, t) {
    const out = [];
    const end = lastUpTo(this.recT, this.recAt[node], this.recAt[node + 1], t, this.recAt[node]) + 1;
    for (let i = Math.max(this.recAt[node], end - 20_000); i < end; i++)
      if (this.recT[i] <= t && this.recEnd[i] > t && this.deadline(this.recMessage[i]) > t) out.push(i);
    return out;
  }
}

