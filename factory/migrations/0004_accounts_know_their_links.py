"""An account knows which tenant had it made, and when a sign-in link was last mailed to it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("factory", "0003_wider_audit_subjects")]
    operations = [
        migrations.AddField(
            "user", "opened_by", models.CharField(max_length=64, default="", db_default="", editable=False)
        ),
        migrations.AddField("user", "link_asked_at", models.DateTimeField(null=True, editable=False)),
    ]
