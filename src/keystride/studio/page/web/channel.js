// Messages between the page and its session. The session writes JSON into elements of the page; the page types JSON into
// a hidden text field. The field may skip values that follow each other quickly, so each value holds all events that have
// not been acknowledged. Events belong to one session: when the session changes, unacknowledged events are dropped.
const channel = (() => {
  let field = null, session = null, ready = false, count = 0, attempts = 0, flushed = 0, unread = [], heard = performance.now();
  const listeners = {};
  const type = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
  const RESEND = 1000; // ms until unacknowledged events are sent again
  const SILENCE = 15000; // ms without a message on an open connection, after which the server counts as away

  function find() {
    if (!field?.isConnected) field = [...document.querySelectorAll("input")].find((input) => input.value.startsWith("keystride:"));
    if (field) hide(field);
    return field;
  }
  // Hide the panel of the field. In a narrow window viser puts all panels into one box, whose other contents stay visible.
  let hidden = null;
  const others = "canvas, .ks-headline, .ks-result";
  function hide(input) {
    if (hidden?.isConnected && hidden.contains(input) && !hidden.querySelector(others)) return;
    let box = input;
    while (box.parentElement && !box.parentElement.querySelector(others)) box = box.parentElement;
    box.closest(".mantine-Paper-root:not(.ks-wire)")?.classList.add("ks-sheet");
    if (box === hidden) return;
    hidden?.classList.remove("ks-wire");
    box.classList.add("ks-wire");
    hidden = box;
  }
  // The field ignores a text that has not changed; the number of the attempt makes it different.
  function flush() {
    if (!unread.length || !find()) return;
    type.call(field, "keystride:" + JSON.stringify({ session, events: unread, attempt: ++attempts }));
    field.dispatchEvent(new Event("input", { bubbles: true }));
    flushed = performance.now();
  }
  function post(name, value) {
    unread.push([++count, name, value]);
    flush();
  }
  // Send nothing while the server is away or has not restored the work of this tab.
  function send(name, value = null) {
    if (session && ready && !away()) post(name, value);
  }
  function urgent(name) { // even if the server seems to be away
    if (session) post(name, null);
  }
  function hello(value) {
    ready = false;
    post("hello", value);
  }
  function listen(id, listener) {
    listeners[id] = { listener, last: null };
  }
  // While the connection is down, viser disables its panels, and the field is in one of them.
  function away() {
    let box = find();
    if (!box || performance.now() - heard > SILENCE) return true;
    for (; box; box = box.parentElement) if (box.style?.pointerEvents === "none") return true;
    return false;
  }
  function poll() {
    find();
    for (const [id, entry] of Object.entries(listeners)) {
      const text = document.getElementById(id)?.textContent;
      if (!text || text === entry.last) continue;
      entry.last = text;
      heard = performance.now();
      const news = JSON.parse(text);
      if (id === "ks-now") {
        if (news.session !== session) [session, ready, unread] = [news.session, false, []];
        else unread = unread.filter(([number]) => number > news.read);
      } else if (news.session !== session) { entry.last = null; continue; }
      if (id === "ks-script") ready = true;
      entry.listener(news);
    }
  }
  new MutationObserver(poll).observe(document.body, { childList: true, subtree: true, characterData: true });
  setInterval(() => { poll(); if (performance.now() - flushed > RESEND) flush(); }, 250);
  return { send, urgent, hello, listen, poll, away, get waiting() { return unread.length > 0; }, get ready() { return ready; } };
})();
