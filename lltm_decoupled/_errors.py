"""What commands raise for a user's mistake."""


class UserError(Exception):
    """Something the user can put right; its message is shown as it is, without a traceback."""
