// What is nicer with JavaScript; nothing here is needed for any decision.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-autosubmit]")) event.target.form.submit();
});
