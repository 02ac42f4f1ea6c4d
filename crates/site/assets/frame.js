// The frame of every page: which page this is, news from the server, and signing in.

import { h, post } from "./kit.js";

const main = document.getElementById("main");
const live = document.getElementById("live");

/**
 * Shows the page of this address. `pages` are pairs of a pattern of paths and a function that
 * fills `main` and may return what hears news, and answers `null` to those that change nothing;
 * `kinds` are the kinds of news.
 */
export async function start(pages, kinds) {
  for (const [pattern, page] of pages) {
    const found = pattern.exec(location.pathname);
    if (!found) continue;
    for (const item of document.querySelectorAll("nav a")) {
      if (item.getAttribute("href") === location.pathname) item.setAttribute("aria-current", "page");
    }
    try {
      const news = await page(main, ...found.slice(1).map(decodeURIComponent));
      main.dataset.ready = "yes";
      if (news) listen(news, kinds);
    } catch (error) {
      if (error.status === 401) signIn();
      else main.replaceChildren(h("h1", {}, "This cannot be shown"), h("p", { class: "note bad" }, error.message));
      main.dataset.ready = "yes";
    }
    return;
  }
}

const LIVE = "Live";
const FAILED = "The last update failed; trying again.";

/**
 * Hands `news` each message, in the order in which they came, until one is not answered with `null`:
 * then the page was drawn anew, and shows what the others tell too.
 */
function listen(news, kinds) {
  const stream = new EventSource("/api/v1/stream");
  let [waiting, told, timer, busy] = [[], 0, null, false];
  // A chart that is drawn anew would be gone under the pointer that drags over it.
  let pressed = false;
  for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) {
    addEventListener(kind, (event) => { pressed = kind !== "pointercancel" && event.buttons !== 0; }, true);
  }
  // Many messages come at once: the page asks again at most every five seconds, and one answer after the other.
  const later = () => {
    if (!busy && waiting.length > 0) timer ??= setTimeout(hand, Math.max(300, 5000 - (Date.now() - told)));
  };
  const hand = async () => {
    timer = null;
    if (pressed) return later();
    const now = waiting;
    [waiting, told, busy] = [[], Date.now(), true];
    try {
      for (const [kind, data] of now) if ((await news(kind, data)) !== null) break;
      if (live.textContent === FAILED) live.textContent = LIVE;
    } catch {
      live.textContent = FAILED;
      waiting.push(["resync", null]);
    }
    busy = false;
    later();
  };
  const tell = (kind, data) => {
    // Whoever has more to read asks for everything.
    if (waiting.length >= 1000) waiting = [["resync", null]];
    else waiting.push([kind, data]);
    later();
  };
  let first = true;
  stream.addEventListener("resync", () => {
    live.textContent = LIVE;
    if (!first) tell("resync", null);
    first = false;
  });
  for (const kind of kinds) {
    stream.addEventListener(kind, (message) => tell(kind, JSON.parse(message.data)));
  }
  stream.onerror = () => { live.textContent = "Not live: the server does not answer."; };
  addEventListener("pagehide", () => stream.close());
}

function signIn() {
  const user = h("input", { name: "user", autocomplete: "username" });
  const secret = h("input", { name: "secret", type: "password", autocomplete: "current-password", required: true });
  const wrong = h("p", { class: "changed", role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    try {
      await post("session", { user: user.value || null, secret: secret.value });
      location.reload();
    } catch (error) {
      wrong.textContent = error.message;
    }
  };
  main.replaceChildren(h("h1", {}, "Sign in"),
    h("form", { class: "sign-in", onsubmit: submit },
      h("label", {}, "User (leave empty for a token)", user),
      h("label", {}, "Password or token", secret),
      h("button", { class: "first" }, "Sign in"), wrong));
}
