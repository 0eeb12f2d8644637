"""What is refused about notifications."""

from factory.kernel.errors import Conflict, InvalidInput, Unprocessable


class AddressRefused(InvalidInput):
    """The address of a service is none that the product sends to. It is never repeated: it holds a secret."""

    code = "address-refused"
    title = "Nothing is sent to such an address"


class TooManyChannels(Unprocessable):
    code = "too-many-channels"
    title = "You have as many channels as one may have"


class ChannelNameTaken(Conflict):
    code = "channel-name-taken"
    title = "You have a channel of that name"


class NotificationNotSetAside(Conflict):
    """Only what was set aside after its tries waits for a person."""

    code = "notification-not-set-aside"
    title = "The notification was not set aside"
