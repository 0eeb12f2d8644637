"""The page behind a link by which somebody sets their password."""

from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.views import INTERNAL_RESET_SESSION_TOKEN, PasswordResetConfirmView
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase, HttpResponseRedirect
from django.urls import reverse_lazy
from unfold.widgets import BASE_INPUT_CLASSES

from factory.kernel.models import User


class NewPasswordForm(SetPasswordForm):  # type: ignore[type-arg]  # generic in the stubs alone
    """A password, twice, in the look of the sign-in form."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for field in self.fields.values():
            field.widget.attrs["class"] = " ".join(BASE_INPUT_CLASSES)
            field.widget.attrs["autocomplete"] = "new-password"


class SetPassword(PasswordResetConfirmView):
    """Set a password by a link: once, within its time. Every session of the account ends with the old one."""

    template_name = "factory/set_password.html"
    form_class = NewPasswordForm
    success_url = reverse_lazy("admin:login")
    reset_url_token = "set"

    def render_to_response(self, context: dict[str, Any], **options: Any) -> HttpResponse:
        """Show the form; a link that is good no more is answered like a page that is not there."""
        status = 200 if context["validlink"] else 404
        answer: HttpResponse = super().render_to_response(context, status=status, **options)
        return answer

    def form_valid(self, form: Any) -> HttpResponse:
        """Set the password in the place of the one for which the link was made: of several who use a link at
        the same moment one does, and the others are answered that it is good no more."""
        account, before = form.user, form.user.password
        account.set_password(form.cleaned_data["new_password1"])
        rows = User.objects.filter(pk=account.pk, password=before)
        self.validlink = bool(rows.update(password=account.password))
        self.request.session.pop(INTERNAL_RESET_SESSION_TOKEN, None)
        if not self.validlink:
            return self.render_to_response(self.get_context_data())
        messages.success(self.request, "Your password is set. Sign in with it.")
        return HttpResponseRedirect(self.get_success_url())


def set_password(site: AdminSite, request: HttpRequest, uidb64: str, token: str) -> HttpResponseBase:
    """Show the page of a link; one that was used, is too old or was never given says so."""
    view = SetPassword.as_view(extra_context={**site.each_context(request), "title": "Set your password"})
    return view(request, uidb64=uidb64, token=token)
