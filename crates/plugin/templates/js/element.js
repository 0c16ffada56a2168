// NAME: lets everything pass but frames that nothing else needs.

export const element = {
  init(config, input) {
    // What the relay knows of a packet is enough; "head" (with `val`) and "all" ask for its bytes.
    return { payload: { tag: "none" } };
  },

  work(packets, bytes) {
    const actions = [];
    packets.forEach((packet, index) => {
      if (packet.kind !== "bidirectional") actions.push({ packet: index, port: 0 });
    });
    if (actions.length === packets.length) return { tag: "pass" };
    return { tag: "only", val: { actions, bytes: new Uint8Array() } };
  },
};
