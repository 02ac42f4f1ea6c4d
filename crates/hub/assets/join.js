// How one more host joins.

import { h, post } from "./kit.js";

/** Addresses that mean this machine itself. */
const HERE = /^(localhost|127\..*|\[::1\])$/;

/** A box that makes the line to type on a host. */
export function joinBox(agents) {
  const line = h("pre", { tabindex: "0", "aria-label": "The line to type" }, `narrows agent join ${location.origin} TOKEN`);
  const answer = h("p", { role: "status", class: "soft small" }, "The hub printed a join line at its start. The button makes one for one more host, for 24 hours.");
  const copy = h("button", { hidden: true, onclick: async () => {
    await navigator.clipboard.writeText(line.textContent);
    answer.textContent = "Copied.";
  } }, "Copy");
  const make = h("button", { class: "first", onclick: async () => {
    make.disabled = true;
    try {
      const { join } = await post("tokens", { uses: 1 });
      line.textContent = `narrows agent join ${location.origin} ${join}`;
      answer.textContent = `This token lets one host join, within 24 hours. It is shown only now.${HERE.test(location.hostname) ? " Put an address of this machine that the host reaches in the place of this one." : ""}`;
      copy.hidden = !navigator.clipboard;
    } catch (error) {
      answer.textContent = `Not done: ${error.message}`;
    }
    make.disabled = false;
  } }, "Make a join line");
  return h("section", { class: "join" }, h("h2", {}, agents > 0 ? "Let one more host join" : "Let a host join"),
    h("ol", {}, h("li", {}, "Make a join line, and type it on the host, as root:", line, h("p", { class: "order" }, make, " ", copy), answer),
      h("li", {}, "Start the agent there: ", h("code", {}, "narrows agent run"), ", or ", h("code", {}, "systemctl enable --now narrows-agent"), ". It is listed here within five seconds.")));
}
