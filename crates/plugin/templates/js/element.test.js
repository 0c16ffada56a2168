import assert from "node:assert";
import test from "node:test";

import { element } from "./element.js";

test("frames that nothing needs are dropped", () => {
  const packets = ["intra", "bidirectional", "predicted"].map((kind) => ({ kind }));
  const { val } = element.work(packets, new Uint8Array());
  assert.deepEqual(val.actions.map((action) => action.packet), [0, 2]);
  assert.equal(element.work(packets.slice(0, 1), new Uint8Array()).tag, "pass");
});
