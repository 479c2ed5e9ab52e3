// How the page and its session talk: the session writes JSON into elements of the page, the page types JSON into a
// hidden text field. The field may skip values that follow each other quickly, so each holds every event that was not
// acknowledged. Events are meant for one session: those that another one has not acknowledged are dropped.
const channel = (() => {
  let field = null, session = null, ready = false, count = 0, attempts = 0, flushed = 0, unread = [], heard = performance.now();
  const listeners = {};
  const type = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
  const AGAIN = 1000; // ms until events that were not acknowledged are sent again
  const SILENCE = 15000; // ms without a word from the session, on an open connection

  function find() {
    if (!field?.isConnected) field = [...document.querySelectorAll("input")].find((input) => input.value.startsWith("keystride:"));
    if (field) hide(field);
    return field;
  }
  // Hide the panel that the field is in. In a narrow window viser puts all panels into one box: the others stay.
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
  // The same text typed again would be ignored by the field: the number of the attempt makes it another one.
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
  // Nothing is sent while the server is away or has not restored this tab's work.
  function send(name, value = null) {
    if (session && ready && !away()) post(name, value);
  }
  function urgent(name) { // also if the server seems to be away: it may yet be heard
    if (session) post(name, null);
  }
  function hello(value) {
    ready = false;
    post("hello", value);
  }
  function listen(id, listener) {
    listeners[id] = { listener, last: null };
  }
  // viser blocks its panels while the connection is down; this field is in one of them.
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
  setInterval(() => { poll(); if (performance.now() - flushed > AGAIN) flush(); }, 250);
  return { send, urgent, hello, listen, poll, away, get waiting() { return unread.length > 0; }, get ready() { return ready; } };
})();
