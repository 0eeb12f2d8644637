"""An audit entry names a token's subject or id whole, behind the word for its kind."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("factory", "0002_walls")]
    operations = [
        migrations.AlterField("auditentry", "subject", models.CharField(max_length=320)),
    ]
