// Keys for those who like them. None of them decides anything: they move the focus, and the button is
// pressed like any other. They are off while somebody writes, and can be turned off for good.
(() => {
  const OFF = "factory-shortcuts-off";
  const ROWS = "#result_list .fc-link, .fc-needs h3 a, .fc-list .fc-link";
  const KEYS = [
    ["j", "the next one in a list"],
    ["k", "the one before"],
    ["/", "search"],
    ["a", "go to Approve, without pressing it"],
    ["c", "go to Request changes, without pressing it"],
    ["r", "go to Reject, without pressing it"],
    ["?", "this help"],
  ];
  const WRITING = "input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable=''], [contenteditable=true]";

  const remembered = () => { try { return localStorage.getItem(OFF) === "yes"; } catch { return false; } };
  const remember = (off) => { try { localStorage.setItem(OFF, off ? "yes" : "no"); } catch { /* then for this page */ } };
  let off = remembered();
  let help;

  const made = (name, text, attributes = {}) => {
    const element = document.createElement(name);
    if (text) element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  function helpDialog() {
    const dialog = made("dialog", "", { class: "fc fc-help-keys", "aria-labelledby": "fc-keys-title" });
    const list = made("dl", "");
    for (const [key, words] of KEYS) {
      const row = made("div", "");
      const term = made("dt", "");
      term.append(made("kbd", key));
      row.append(term, made("dd", words));
      list.append(row);
    }
    const label = made("label", "");
    const box = made("input", "", { type: "checkbox" });
    box.checked = !off;
    box.addEventListener("change", () => { off = !box.checked; remember(off); });
    label.append(box, " Use these keys");
    const form = made("form", "", { method: "dialog" });
    form.append(label, made("button", "Close", { class: "fc-button" }));
    dialog.append(made("h2", "Keyboard shortcuts", { id: "fc-keys-title" }), list,
      made("p", "Nothing is decided by a key alone. While you write they are letters.", { class: "fc-soft" }), form);
    document.body.append(dialog);
    return dialog;
  }

  function showHelp() {
    help ??= helpDialog();
    if (!help.open) help.showModal();
  }

  function step(by) {
    const rows = [...document.querySelectorAll(ROWS)].filter((row) => row.getClientRects().length);
    if (!rows.length) return false;
    const here = rows.findIndex((row) => row === document.activeElement || row.closest("tr, li")?.contains(document.activeElement));
    const next = rows[here < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, here + by))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
    return true;
  }

  function focusOn(element) {
    if (!element) return false;
    for (let fold = element.closest("details:not([open])"); fold; fold = fold.parentElement?.closest("details:not([open])")) fold.open = true;
    element.focus();
    element.scrollIntoView({ block: "nearest" });
    return document.activeElement === element;
  }

  const shown = (selector) => [...document.querySelectorAll(selector)].find((one) => one.getClientRects().length);

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest?.(WRITING) || document.querySelector("dialog[open]")) return;
    if (event.key === "?") { event.preventDefault(); showHelp(); return; }
    if (off) return;
    const acts = {
      j: () => step(1),
      k: () => step(-1),
      "/": () => focusOn(shown("#searchbar") ?? shown("#fc-words, #fc-find")),
    };
    const act = acts[event.key] ?? (/^[acr]$/.test(event.key) ? () => focusOn(shown(`[data-key="${event.key}"]`)) : null);
    if (act?.()) event.preventDefault();
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-shortcuts]")) showHelp();
    const unfold = event.target.closest("[data-unfold]");
    if (unfold) {
      const place = unfold.closest(".fc-card") ?? document;
      const folds = [...place.querySelectorAll(".fc-diff, .fc-fold")].filter((one) => one.tagName === "DETAILS");
      const open = folds.some((one) => !one.open);
      folds.forEach((one) => { one.open = open; });
      unfold.textContent = open ? "Fold all" : "Unfold all";
    }
  });

  // A reason that is being written survives a slip of the hand: it stays with this tab until it is sent.
  function keepDraft(field) {
    const key = `factory-draft-${field.form.dataset.draft}`;
    try {
      if (!field.value) field.value = sessionStorage.getItem(key) ?? "";
      field.addEventListener("input", () => sessionStorage.setItem(key, field.value));
      field.form.addEventListener("submit", () => sessionStorage.removeItem(key));
    } catch { /* without a store the page is as it would be without scripts */ }
  }

  function begin() {
    document.querySelectorAll("[data-shortcuts]").forEach((button) => { button.hidden = false; });
    document.querySelectorAll("[data-unfold]").forEach((button) => {
      button.hidden = !(button.closest(".fc-card") ?? document).querySelector(".fc-diff:not([open]):is(details), .fc-fold");
    });
    document.querySelectorAll("form[data-draft] textarea").forEach(keepDraft);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
